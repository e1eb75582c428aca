"""Linear Road's historical queries: the slow reference of
docs/linear-road-rules.md, sections 3 and 5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from math import floor

from tests.reference.linearroad_input import Row

#: docs/linear-road-rules.md, section 5.1: (VID, Day, XWay, Tolls)
TollRow = tuple[int, int, int, int]
#: docs/linear-road-rules.md, section 5.2: (Day, Min, XWay, Dir, Seg, Lav, Cnt, Toll)
SegmentRow = tuple[int, int, int, int, int, int, int, int]


def expenditures(tolls: Iterable[TollRow]) -> dict[tuple[int, int, int], int]:
    """TollHistory's Tolls by (VID, Day, XWay), one row each."""
    by_key: dict[tuple[int, int, int], int] = {}
    for vid, day, xway, amount in tolls:
        assert (vid, day, xway) not in by_key, "TollHistory has one row for a vehicle's day"
        by_key[vid, day, xway] = amount
    return by_key


def day_of_week(day: int) -> int:
    """docs/linear-road-rules.md, section 5.3: Day k has DOW ((5 - 1 - k) mod 7) + 1."""
    return (5 - 1 - day) % 7 + 1


def round_half_up(number: Fraction) -> int:
    """The nearest integer; of two as near, the larger."""
    return floor(number + Fraction(1, 2))


class SegmentHistory:
    """SegmentHistory, with the rows of each (DOW, Min, XWay, Dir, Seg) together."""

    def __init__(self, rows: Iterable[SegmentRow]) -> None:
        self.days: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
        for day, minute, xway, dir, seg, lav, cnt, _ in rows:
            self.days[day_of_week(day), minute, xway, dir, seg].append((lav, cnt))

    def means(self, *key: int) -> tuple[Fraction, Fraction]:
        """docs/linear-road-rules.md, section 3.3, R43: mean Lav and Cnt; without any day 0, 0."""
        days = self.days.get(key, [])
        if not days:
            return Fraction(0), Fraction(0)
        return (
            Fraction(sum(lav for lav, _ in days), len(days)),
            Fraction(sum(cnt for _, cnt in days), len(days)),
        )


def travel_time(query: Row, history: SegmentHistory) -> tuple[int, int]:
    """docs/linear-road-rules.md, section 3.3: TravelTime in seconds and Toll of one request."""
    dir = 0 if query.sinit <= query.send else 1
    y = Fraction(query.tod)
    toll = 0
    for seg in range(query.sinit, query.send, 1 if dir == 0 else -1):
        minute = (floor(y) - 1) % 1440 + 1  # minutes run 1..1440 and wrap within the same DOW
        lav, cnt = history.means(query.dow, minute, query.xway, dir, seg)
        y += 60 / max(lav, Fraction(1))
        if floor(lav) < 40 and floor(cnt) > 50:
            toll += 2 * (floor(cnt) - 50) ** 2
    return round_half_up(60 * (y - query.tod)), toll
