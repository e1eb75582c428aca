"""One expressway in plain Python: its vehicles, stops and segments."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

__all__ = ["Reports", "Road", "Told"]

CELLS = 200  # 100 segments of each direction
EXACT = 1e-9
EXIT = 4  # a lane


class Reports(NamedTuple):
    """The reports of an expressway in one second, by column."""

    vid: list[int]
    spd: list[int]
    lane: list[int]
    dir: list[int]
    seg: list[int]
    pos: list[int]


class Told(NamedTuple):
    """What follows from the reports of a second: answers by column, and charges."""

    tolls: list[tuple[int, int, int]]  # vehicle, average speed, toll
    alerts: list[tuple[int, int]]  # vehicle, segment
    charges: list[tuple[int, int]]  # vehicle, toll


class Vehicle:
    """The last report of a vehicle."""

    __slots__ = ("dir", "equal", "lane", "pos", "quote", "seg", "time")

    def __init__(self) -> None:
        self.time, self.equal, self.quote = -100, 0, 0
        self.seg = self.lane = self.dir = self.pos = -1


class Road:
    """The state of an expressway (docs/linear-road-rules.md, section 2)."""

    def __init__(self) -> None:
        self._minute = 0
        self._vehicles: dict[int, Vehicle] = {}
        #: By vehicle: lane, direction, position, first and last second.
        self._stops: dict[int, tuple[int, int, int, int, int]] = {}
        self._speeds: list[dict[int, list[int]]] = [{} for _ in range(CELLS)]
        #: By segment, the averages of complete minutes.
        self._averages: list[dict[int, float]] = [{} for _ in range(CELLS)]
        self._lav, self._toll, self._accident = [-1] * CELLS, [0] * CELLS, [-1] * CELLS

    def answer(self, now: int, reports: Reports) -> Told:
        """Answer the reports of a second."""
        if now // 60 > self._minute:
            self._begin(now // 60)
        told = Told([], [], [])
        vehicles, speeds = self._vehicles, self._speeds
        for vid, spd, lane, way, seg, pos in zip(*reports, strict=True):
            last = vehicles.get(vid)
            if last is None:
                last = vehicles[vid] = Vehicle()
            elif last.time == now:
                continue  # a second report in one second
            goes_on = last.time == now - 30
            entered = not goes_on or last.seg != seg
            stood = last.equal >= 4
            same = goes_on and last.pos == pos and last.lane == lane and last.dir == way
            last.equal = last.equal + 1 if same else 1
            cell = 100 * way + seg
            known = speeds[cell].get(vid)
            if known is None:
                speeds[cell][vid] = [spd, 1]
            else:
                known[0] += spd
                known[1] += 1
            if entered:
                if goes_on and last.quote:
                    told.charges.append((vid, last.quote))
                last.quote = 0
                if lane != EXIT:
                    last.quote = self._toll[cell]
                    told.tolls.append((vid, self._lav[cell], last.quote))
                    if self._accident[cell] >= 0:
                        told.alerts.append((vid, self._accident[cell]))
            last.time, last.seg, last.lane, last.dir, last.pos = now, seg, lane, way, pos
            if stood or last.equal >= 4:
                self._stop(vid, last)
        return told

    def _stop(self, vid: int, last: Vehicle) -> None:
        if last.equal >= 4 and 1 <= last.lane <= 3:
            begins, ends = last.time - 30 * (last.equal - 4), last.time + 30
            self._stops[vid] = (last.lane, last.dir, last.pos, begins, ends)
        elif vid in self._stops:
            *place, ends = self._stops[vid]
            self._stops[vid] = (*place, min(ends, last.time))  # type: ignore[assignment]

    def _begin(self, now: int) -> None:
        """Complete the current minute and compute what is quoted in another one."""
        cars = [0] * CELLS
        for cell, speeds in enumerate(self._speeds):
            if speeds:
                sums = sum(total / count for total, count in speeds.values())
                self._averages[cell][self._minute] = sums / len(speeds)
                if self._minute == now - 1:
                    cars[cell] = len(speeds)
                self._speeds[cell] = {}
        self._accident = self._accidents(now)
        for cell, averages in enumerate(self._averages):
            for minute in [minute for minute in averages if minute < now - 5]:
                del averages[minute]
            lav = -1
            if averages:
                lav = int((sum(averages.values()) / len(averages) + EXACT) // 1)
            over, free = cars[cell] - 50, self._accident[cell] < 0
            self._lav[cell] = lav
            self._toll[cell] = 2 * over * over if lav < 40 and over > 0 and free else 0
        self._minute = now

    def _accidents(self, now: int) -> list[int]:
        """By segment, the nearest one with two vehicles that stood at one place; -1 for none."""
        begin, end = 60 * (now - 1), 60 * now
        places = defaultdict(list)
        for lane, way, pos, begins, ends in self._stops.values():
            if ends > begin and begins < end:
                places[way, lane, pos].append((max(begins, begin), min(ends, end)))
        found = [-1] * CELLS
        for (way, _, pos), times in places.items():
            ordered = sorted(times)
            overlap = any(b[0] < max(t[1] for t in ordered[:i]) for i, b in enumerate(ordered) if i)
            if not overlap:
                continue
            place, step = pos // 5280, 2 * way - 1
            for seg in range(place, place + 5 * step, step):
                cell = 100 * way + seg
                if 0 <= seg <= 99 and (found[cell] < 0 or (place - found[cell]) * step > 0):
                    found[cell] = place
        return found
