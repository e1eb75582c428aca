"""Slow, plain definitions of what the kernels of the traffic and the history compute."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

MASK = 2**64 - 1


def splitmix64(key: int, counter: int) -> int:
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def idm(
    v: float, desired: float, headway: float, gap: float, closing: float,
    *, a: float, b: float, s0: float,
) -> float:  # fmt: skip
    """Treiber, Hennecke, Helbing (2000); free braking no harder than comfortable."""
    free = max(a * (1 - (v / desired) ** 4), -b)
    wanted = s0 + max(0.0, v * headway + v * closing / (2 * math.sqrt(a * b)))
    return free - a * (wanted / max(gap, 0.1)) ** 2


def notifications(rows: Sequence[dict[str, int]]) -> dict[str, int]:
    """docs/linear-road-rules.md, section 2.1, `paper` column, for one expressway."""
    speeds: dict[tuple[int, int, int], dict[int, list[int]]] = defaultdict(
        lambda: defaultdict(list)
    )
    trips: dict[int, list[dict[str, int]]] = defaultdict(list)
    stands: dict[tuple[int, int, int], list[tuple[int, int]]] = defaultdict(list)
    accidents: set[tuple[int, int, int]] = set()
    for row in rows:
        minute = row["time"] // 60 + 1
        speeds[(minute, row["dir"], row["seg"])][row["vid"]].append(row["spd"])
        trip = trips[row["vid"]]
        if trip and trip[-1]["time"] != row["time"] - 30:
            trip.clear()
        trip.append(row)
        last = trip[-4:]
        place = {(r["dir"], r["lane"], r["pos"]) for r in last}
        if len(last) == 4 and len(place) == 1 and 1 <= row["lane"] <= 3:
            stands[place.pop()].append((row["time"], row["vid"]))
    for (direction, _, pos), reports in stands.items():
        for t, vid in reports:
            for u, other in reports:
                if vid != other:
                    for second in range(max(t, u), min(t, u) + 30):
                        accidents.add((second // 60 + 1, direction, pos // 5280))

    @functools.cache
    def lav(minute: int, direction: int, seg: int) -> int:
        averages = []
        for m in range(minute - 5, minute):
            of = speeds.get((m, direction, seg))
            if of:
                averages.append(sum(sum(s) / len(s) for s in of.values()) / len(of))
        return math.floor(sum(averages) / len(averages) + 1e-9) if averages else -1

    count = {"notifications": 0, "paid": 0, "alerts": 0}
    last_of: dict[int, dict[str, int]] = {}
    for row in rows:
        before = last_of.get(row["vid"])
        last_of[row["vid"]] = row
        same_trip = before is not None and before["time"] == row["time"] - 30
        if row["lane"] == 4 or (same_trip and before and before["seg"] == row["seg"]):
            continue
        minute, direction, seg = row["time"] // 60 + 1, row["dir"], row["seg"]
        step = 1 if direction == 0 else -1
        count["notifications"] += 1
        if any((minute - 1, direction, seg + step * i) in accidents for i in range(5)):
            count["alerts"] += 1
        else:
            n = len(speeds.get((minute - 1, direction, seg), {}))
            count["paid"] += 0 <= lav(minute, direction, seg) < 40 and n > 50
    return count


def travel_time(
    days: dict[tuple[int, int, int], list[tuple[int, int]]], sinit: int, send: int, tod: int
) -> tuple[int, int]:
    """docs/linear-road-rules.md, section 3.3.

    `days` maps (dir, minute, seg) to the (Lav, Cnt) of the days with that DOW.
    """
    direction = 0 if sinit <= send else 1
    y, toll = Fraction(tod), 0
    for seg in range(sinit, send, 1 if direction == 0 else -1):
        minute = (math.floor(y) - 1) % 1440 + 1
        found = days.get((direction, minute, seg), [])
        lav = Fraction(sum(lav for lav, _ in found), len(found) or 1)
        cnt = Fraction(sum(cnt for _, cnt in found), len(found) or 1)
        y += 60 / max(lav, Fraction(1))
        if math.floor(lav) < 40 and math.floor(cnt) > 50:
            toll += 2 * (math.floor(cnt) - 50) ** 2
    return math.floor(60 * (y - tod) + Fraction(1, 2)), toll


def as_rows(table: Any) -> list[dict[str, int]]:
    return list(table.to_pylist())
