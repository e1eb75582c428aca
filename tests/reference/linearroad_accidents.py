"""Linear Road's stopped cars and accidents, second by second: the slow reference.

docs/linear-road-rules.md, sections 2.5 and 2.6: the rows `stopped` and `accident minutes` of the
table of differences, one function per cell.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations
from typing import NamedTuple

from tests.reference.linearroad_input import Row

#: (xway, lane, pos, dir)
Place = tuple[int, int, int, int]


class Accident(NamedTuple):
    """An accident's minutes, both ends included; `last_minute` is infinite if it never ends."""

    xway: int
    dir: int
    seg: int
    first_minute: int
    last_minute: float


def minute(time: int) -> int:
    """docs/linear-road-rules.md, section 1.7: M(t) = floor(t / 60) + 1."""
    return time // 60 + 1


def place(report: Row) -> Place:
    """What must be equal for a vehicle to stand still."""
    return (report.xway, report.lane, report.pos, report.dir)


def accident_segment(pos: int) -> int:
    """docs/linear-road-rules.md, section 2.6: floor(Pos / 5280), whatever Seg the reports give."""
    return pos // 5280


def runs_at_one_place(reports: list[Row]) -> list[list[Row]]:
    """Consecutive reports cut wherever the place changes: longest runs at one place."""
    runs: list[list[Row]] = []
    for report in reports:
        if runs and place(runs[-1][-1]) == place(report):
            runs[-1].append(report)
        else:
            runs.append([report])
    return runs


def paper_accidents(trips: list[list[Row]]) -> list[Accident]:
    """Column `paper`: every minute with a second at which two vehicles are stopped at one place.

    Stopped: four consecutive reports of a trip with equal (XWay, Lane, Pos, Dir), Lane 1..3, any
    speed; from the second of the fourth report up to, not including, the earlier of the second
    of the first report that differs or starts a trip, and 30 s after the last equal report.
    """
    report_times: dict[tuple[int, int], list[int]] = defaultdict(list)
    for trip in trips:
        for report in trip:
            report_times[report.vid, report.xway].append(report.time)

    stopped_at: dict[tuple[Place, int], set[int]] = defaultdict(set)
    for trip in trips:
        for run in runs_at_one_place(trip):
            if len(run) < 4 or run[0].lane not in (1, 2, 3):
                continue
            last = run[-1]
            ends = [last.time + 30]
            # The run is as long as it can be: any later report differs or starts a trip.
            ends += [time for time in report_times[last.vid, last.xway] if time > last.time]
            for second in range(run[3].time, min(ends)):
                stopped_at[place(last), second].add(last.vid)

    minutes = {
        (where, minute(second)) for (where, second), vids in stopped_at.items() if len(vids) >= 2
    }
    return [Accident(xway, dir, accident_segment(pos), m, m) for (xway, _, pos, dir), m in minutes]


def brandeis_accidents(reports: list[Row]) -> list[Accident]:
    """Column `brandeis`: minutes with a stationary report 0 to 30 s after another vehicle's.

    Stationary: the fourth and later of reports with equal (XWay, Lane, Pos, Dir) and Spd = 0 on
    one XWay, each exactly 30 s after the last; any lane.
    """
    by_vehicle: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for report in sorted(reports, key=lambda report: report.time):
        by_vehicle[report.vid, report.xway].append(report)

    stationary: dict[Place, list[Row]] = defaultdict(list)
    for sequence in by_vehicle.values():
        for i in range(3, len(sequence)):
            four = sequence[i - 3 : i + 1]
            if (
                len({place(report) for report in four}) == 1
                and all(report.spd == 0 for report in four)
                and all(four[k + 1].time - four[k].time == 30 for k in range(3))
            ):
                stationary[place(four[3])].append(four[3])

    minutes = {
        (where, minute(later.time))
        for where, standing in stationary.items()
        for later in standing
        for earlier in standing
        if later.vid != earlier.vid and 0 <= later.time - earlier.time <= 30
    }
    return [Accident(xway, dir, accident_segment(pos), m, m) for (xway, _, pos, dir), m in minutes]


class Stop(NamedTuple):
    """`walmart`: a stopped vehicle, until its trip's first report elsewhere (infinite: never)."""

    vid: int
    place: Place
    fourth_report: int
    first_report_elsewhere: float


def walmart_stops(trips: list[list[Row]]) -> list[Stop]:
    """Column `walmart`, `stopped`: four consecutive reports of a trip with equal (Lane, Pos).

    A trip is of one (VID, XWay, Dir), so its reports differ in Lane and Pos alone. Any lane, any
    speed, any gap. A vehicle that vanishes, or returns in a new trip, never differs.
    """
    stops = []
    for trip in trips:
        runs = runs_at_one_place(trip)
        for i, run in enumerate(runs):
            if len(run) >= 4:
                elsewhere = runs[i + 1][0].time if i + 1 < len(runs) else math.inf
                stops.append(Stop(run[0].vid, place(run[0]), run[3].time, elsewhere))
    return stops


def walmart_accidents(trips: list[list[Row]]) -> list[Accident]:
    """Column `walmart`, `accident minutes`: the first accident of each (XWay, Dir, Seg).

    From the minute of the later vehicle's fourth report to the minute before that of the first
    report of either vehicle that differs. First by the second of its start: accidents that start
    in the same second are all the first.
    """
    by_place: dict[Place, list[Stop]] = defaultdict(list)
    for stop in walmart_stops(trips):
        by_place[stop.place].append(stop)

    candidates: dict[tuple[int, int, int], list[tuple[int, float]]] = defaultdict(list)
    for (xway, _, pos, dir), stops in by_place.items():
        for one, other in combinations(stops, 2):
            start = max(one.fourth_report, other.fourth_report)
            end = min(one.first_report_elsewhere, other.first_report_elsewhere)
            if one.vid != other.vid and start < end:
                candidates[xway, dir, accident_segment(pos)].append((start, end))

    accidents = []
    for (xway, dir, seg), spans in candidates.items():
        first_start = min(start for start, _ in spans)
        for start, end in spans:
            if start == first_start:
                last_minute = math.inf if math.isinf(end) else minute(int(end)) - 1
                accidents.append(Accident(xway, dir, seg, minute(start), last_minute))
    return accidents
