"""Linear Road in plain Python, three rule sets: the oracle for the engine's answers.

Written from docs/linear-road-rules.md, sections 1 to 5, with all their readings, and, where the
page is silent, from the VLDB 2004 paper. It passes over the whole input at once, keeps every
report, and computes means as fractions: slow, and with nothing in common with the engine.

* `parse(text)` reads a flat file (`linearroad_input`).
* `answers(rows, rules, tolls, segment_history)` gives every answer, without Emit, sorted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from math import floor
from typing import Literal, NamedTuple

from tests.reference.linearroad_accidents import (
    Accident,
    brandeis_accidents,
    minute,
    paper_accidents,
    walmart_accidents,
)
from tests.reference.linearroad_history import (
    SegmentHistory,
    SegmentRow,
    TollRow,
    expenditures,
    round_half_up,
    travel_time,
)
from tests.reference.linearroad_input import (
    BALANCE,
    EXPENDITURE,
    REPORT,
    TRAVEL_TIME,
    Reject,
    Row,
    implausible,
    parse,
    to_text,
)

__all__ = ["RULES", "Reject", "Row", "Rules", "answers", "implausible", "parse", "to_text"]

Rules = Literal["paper", "brandeis", "walmart"]
RULES: tuple[Rules, ...] = ("paper", "brandeis", "walmart")


def paper_trips(reports: list[Row]) -> list[list[Row]]:
    """docs/linear-road-rules.md, section 2.2, `paper`: by reports exactly 30 s apart."""
    by_vehicle: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for report in sorted(reports, key=lambda report: report.time):
        by_vehicle[report.vid, report.xway].append(report)
    trips: list[list[Row]] = []
    for sequence in by_vehicle.values():
        last = None
        for report in sequence:
            if last is not None and report.time - last.time == 30:
                trips[-1].append(report)
            else:
                trips.append([report])
            last = report
    return trips


def walmart_trips(reports: list[Row]) -> list[list[Row]]:
    """docs/linear-road-rules.md, section 2.2, `walmart`, without the ignored reports."""
    by_vehicle: dict[tuple[int, int, int], list[Row]] = defaultdict(list)
    for report in sorted(reports, key=lambda report: report.time):
        by_vehicle[report.vid, report.xway, report.dir].append(report)
    trips: list[list[Row]] = []
    for sequence in by_vehicle.values():
        last = None
        for report in sequence:
            if last is not None and last.lane == 4 and report.lane != 0:
                continue
            if last is None or (report.lane == 0 and report.time - last.time > 60):
                trips.append([report])
            else:
                trips[-1].append(report)
            last = report
    return trips


def trip_triggers(trip: list[Row]) -> list[Row]:
    """docs/linear-road-rules.md, section 2.3, `paper` and `walmart`: Seg alone decides."""
    return [
        report
        for i, report in enumerate(trip)
        if report.lane != 4 and (i == 0 or report.seg != trip[i - 1].seg)
    ]


def brandeis_triggers(reports: list[Row]) -> list[Row]:
    """docs/linear-road-rules.md, section 2.3, `brandeis`: first visits, exit lanes aside."""
    first: dict[tuple[int, int, int, int], Row] = {}
    for report in sorted(reports, key=lambda report: report.time):
        if report.lane != 4:
            first.setdefault((report.vid, report.xway, report.dir, report.seg), report)
    return list(first.values())


class Statistics:
    """docs/linear-road-rules.md, section 2.4: n and LAV, from the reports that count."""

    def __init__(self, reports: list[Row], rules: Rules) -> None:
        self.rules = rules
        self.reports: dict[tuple[int, int, int, int], list[Row]] = defaultdict(list)
        for report in reports:
            key = (report.xway, report.dir, report.seg, minute(report.time))
            self.reports[key].append(report)
        self.lav = cache(self._lav)

    def in_minute(self, xway: int, dir: int, seg: int, m: int) -> list[Row]:
        """The reports from one segment in one minute."""
        return self.reports.get((xway, dir, seg, m), [])

    def n(self, xway: int, dir: int, seg: int, m: int) -> int:
        """Number of distinct VIDs that reported from (XWay, Dir, Seg) in minute m - 1."""
        return len({report.vid for report in self.in_minute(xway, dir, seg, m - 1)})

    def average_speed(self, xway: int, dir: int, seg: int, m: int) -> Fraction | None:
        """Avgs: mean over vehicles of each vehicle's mean speed in minute m; None without any."""
        speeds: dict[int, list[int]] = defaultdict(list)
        for report in self.in_minute(xway, dir, seg, m):
            speeds[report.vid].append(report.spd)
        if not speeds:
            return None
        return sum((Fraction(sum(v), len(v)) for v in speeds.values()), Fraction(0)) / len(speeds)

    def _lav(self, xway: int, dir: int, seg: int, m: int) -> int:
        """LAV(m) as the integer that is sent and that the toll rule tests."""
        five = range(m - 5, m)
        if self.rules == "walmart":
            speeds = [report.spd for k in five for report in self.in_minute(xway, dir, seg, k)]
            return round_half_up(Fraction(sum(speeds), len(speeds))) if speeds else 0
        averages = [self.average_speed(xway, dir, seg, k) for k in five]
        present = [average for average in averages if average is not None]
        return floor(sum(present, Fraction(0)) / len(present)) if present else -1


class Notification(NamedTuple):
    """What a trigger is answered with."""

    trigger: Row
    lav: int
    toll: int
    #: The nearest accident segment downstream, or None without an alert.
    accident_seg: int | None


def nearest_accident(
    report: Row, accidents: dict[tuple[int, int, int], list[Accident]]
) -> int | None:
    """docs/linear-road-rules.md, section 2.7: accident ahead."""
    before = minute(report.time) - 1
    for i in range(5):
        seg = min(report.seg + i, 99) if report.dir == 0 else max(report.seg - i, 0)
        for accident in accidents.get((report.xway, report.dir, seg), []):
            if accident.first_minute <= before <= accident.last_minute:
                return seg
    return None


def notifications(
    triggers: list[Row], statistics: Statistics, accidents: list[Accident]
) -> list[Notification]:
    """docs/linear-road-rules.md, section 2.7: what every trigger is answered with."""
    by_segment: dict[tuple[int, int, int], list[Accident]] = defaultdict(list)
    for accident in accidents:
        by_segment[accident.xway, accident.dir, accident.seg].append(accident)
    notified = []
    for report in triggers:
        key = (report.xway, report.dir, report.seg, minute(report.time))
        lav, n = statistics.lav(*key), statistics.n(*key)
        accident_seg = nearest_accident(report, by_segment)
        toll = 2 * (n - 50) ** 2 if lav < 40 and n > 50 and accident_seg is None else 0
        notified.append(Notification(report, lav, toll, accident_seg))
    return notified


class Charge(NamedTuple):
    """A toll put on a vehicle's account at a second."""

    vid: int
    time: int
    toll: int


def trip_charges(trips: list[list[Row]], notified: list[Notification]) -> list[Charge]:
    """docs/linear-road-rules.md, section 2.8, `paper` and `walmart`: when a segment is left."""
    quoted = {notification.trigger: notification.toll for notification in notified}
    charges = []
    for trip in trips:
        entered = trip[0]  # the report with which the present segment was entered
        for report in trip[1:]:
            if report.seg != entered.seg:
                if entered.lane != 4:
                    charges.append(Charge(report.vid, report.time, quoted[entered]))
                entered = report
    return charges


def brandeis_charges(notified: list[Notification]) -> list[Charge]:
    """docs/linear-road-rules.md, section 2.8, `brandeis`: at the vehicle's next notification."""
    times: dict[int, set[int]] = defaultdict(set)
    for notification in notified:
        times[notification.trigger.vid].add(notification.trigger.time)
    charges = []
    for notification in notified:
        vid, time = notification.trigger.vid, notification.trigger.time
        later = [other for other in times[vid] if other > time]
        if later:
            charges.append(Charge(vid, min(later), notification.toll))
    return charges


def process(reports: list[Row], rules: Rules) -> tuple[list[Notification], list[Charge]]:
    """Every notification and every charge of a run (docs/linear-road-rules.md, section 2)."""
    if rules == "brandeis":
        notified = notifications(
            brandeis_triggers(reports), Statistics(reports, rules), brandeis_accidents(reports)
        )
        return notified, brandeis_charges(notified)
    if rules == "paper":
        trips = paper_trips(reports)
        accidents = paper_accidents(trips)
    else:
        trips = walmart_trips(reports)
        accidents = walmart_accidents(trips)
    counted = [report for trip in trips for report in trip]
    triggers = [report for trip in trips for report in trip_triggers(trip)]
    notified = notifications(triggers, Statistics(counted, rules), accidents)
    return notified, trip_charges(trips, notified)


def answers(
    rows: Iterable[tuple[int, ...]],
    rules: Rules,
    tolls: Iterable[TollRow] | None = None,
    segment_history: Iterable[SegmentRow] | None = None,
) -> list[tuple[int, ...]]:
    """Every answer to accepted rows, sorted, as in docs/linear-road-rules.md, section 4.1.

    Emit is left out:

    `(0, VID, Time, Lav, Toll)`, `(1, Time, VID, Seg)`, `(2, Time, ResultTime, QID, Bal)`,
    `(3, Time, QID, Bal)` and `(4, Time, QID, TravelTime, Toll)`.

    >>> answers([Row(0, 5, 7, 50, 0, 1, 0, 2, 11000), Row(2, 9, 7, qid=3)], "paper")
    [(0, 7, 5, -1, 0), (2, 9, 9, 3, 0)]
    """
    everything = [Row(*row) for row in rows]
    reports = [row for row in everything if row.type == REPORT]
    assert len({(r.vid, r.xway, r.time) for r in reports}) == len(reports), "rows not from parse"
    notified, charges = process(reports, rules)
    spent = expenditures(tolls or [])
    history = None if segment_history is None else SegmentHistory(segment_history)

    found: list[tuple[int, ...]] = []
    for trigger, lav, toll, accident_seg in notified:
        found.append((0, trigger.vid, trigger.time, lav, toll))
        if accident_seg is not None:
            found.append((1, trigger.time, trigger.vid, accident_seg))
    charged: dict[int, list[Charge]] = defaultdict(list)
    for charge in charges:
        charged[charge.vid].append(charge)
    for row in everything:
        if row.type == BALANCE:  # docs/linear-road-rules.md, section 3.1
            balance = sum(c.toll for c in charged.get(row.vid, []) if c.time <= row.time)
            found.append((2, row.time, row.time, row.qid, balance))
        elif row.type == EXPENDITURE:
            found.append((3, row.time, row.qid, spent.get((row.vid, row.day, row.xway), 0)))
        elif row.type == TRAVEL_TIME:
            estimate = (-1, -1) if history is None else travel_time(row, history)
            found.append((4, row.time, row.qid, *estimate))
    return sorted(found)
