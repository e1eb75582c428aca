"""Linear Road by the rules of the 2003 thesis, in plain Python: the oracle for the engine.

Written from docs/linear-road-thesis.md alone. It looks at the whole input at once, enumerates
seconds, keeps every report and computes means as fractions.

* `parse(text)` reads a flat file of nine-field rows, `of_paper` translates the paper's rows.
* `answers(rows, ...)` gives every answer with the second of its cause, sorted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from math import floor
from typing import NamedTuple

from tests.reference import linearroad_input as paper
from tests.reference.linearroad_history import SegmentHistory, SegmentRow
from tests.reference.linearroad_input import Reject, int32, lines_of

HEADER = ("Type", "Time", "VID", "Speed", "XWay", "Mile", "Offset", "Lane", "Dir")
REPORT, BALANCE, EXPENDITURE, TRAVEL_TIME = 0, 2, 3, 4
#: The fields that requests have instead, in order, and the domain of every field.
REQUESTS = {
    BALANCE: ("Time", "VID", "QID"),
    EXPENDITURE: ("Time", "VID", "QID", "XWay"),
    TRAVEL_TIME: ("Time", "VID", "QID", "XWay", "Minit", "Mend", "DOW", "TOD"),
}
DOMAIN = {"Mile": 99, "Offset": 1759, "Lane": 7, "Minit": 99, "Mend": 99, "DOW": 6, "TOD": 1439}

Segment = tuple[int, int, int]  # XWay, Mile, Dir


class Report(NamedTuple):
    """A position report."""

    time: int
    vid: int
    speed: int
    xway: int
    mile: int
    offset: int
    lane: int
    dir: int

    @property
    def segment(self) -> Segment:
        return (self.xway, self.mile, self.dir)

    @property
    def position(self) -> tuple[int, ...]:
        return (self.xway, self.mile, self.dir, self.offset, self.lane)

    @property
    def on_ramp(self) -> bool:
        return self.lane in (0, 7)

    def row(self) -> tuple[int, ...]:
        return (REPORT, *self)


class Request(NamedTuple):
    """A request; fields that its type does not need are -1."""

    type: int
    time: int
    vid: int
    qid: int
    xway: int = -1
    minit: int = -1
    mend: int = -1
    dow: int = -1
    tod: int = -1

    def row(self) -> tuple[int, ...]:
        return tuple(self)


Row = Report | Request


class Constants(NamedTuple):
    """What the thesis leaves open."""

    basetoll: int = 2
    basecredit: int = 50
    ftmin: int = 500


USUAL = Constants()


# -- the input --------------------------------------------------------------------------------


def row_of(fields: tuple[int, ...]) -> Row | str:
    """A row of nine integers, or the reason to reject it."""
    kind, *values = fields
    if kind == REPORT:
        for name, value in zip(HEADER[1:], values, strict=True):
            if name == "Dir":
                outside = value != values[6] // 4
            elif name == "Speed":
                outside = False
            else:
                outside = not 0 <= value <= DOMAIN.get(name, value)
            if outside:
                return name
        return Report(*values)
    if kind not in REQUESTS:
        return "unknown type"
    needed = REQUESTS[kind]
    for name, value in zip(needed, values, strict=False):
        if not 0 <= value <= DOMAIN.get(name, value):
            return name
    return Request(kind, *values[: len(needed)])


def accepted(rows: Iterable[tuple[int, str, Row | str]]) -> tuple[list[Row], list[Reject]]:
    """The rows that count, from (line, text, row or reason)."""
    good: list[Row] = []
    rejects: list[Reject] = []
    clock, seen = 0, set()
    for line, text, row in rows:
        why = row if isinstance(row, str) else ""
        if not isinstance(row, str):
            if row.time < clock:
                why = "out of order"
            else:
                clock = row.time
            if not why and isinstance(row, Report):
                if (row.vid, row.xway, row.time) in seen:
                    why = "second report"
                seen.add((row.vid, row.xway, row.time))
            if not why:
                good.append(row)
        if why:
            rejects.append(Reject(line, why, text))
    return good, rejects


def parse(text: str) -> tuple[list[Row], list[Reject]]:
    """The good rows of a flat file of nine-field rows, and the rejects."""
    read = []
    for number, line in enumerate(lines_of(text), 1):
        fields = line.split(",")
        integers = [field.removeprefix("-") for field in fields]
        row: Row | str
        if len(fields) != len(HEADER):
            row = "field count"
        elif not all(field.isascii() and field.isdigit() for field in integers):
            row = "not an integer"
        elif any(int32(field) is None for field in fields):
            row = "out of int32"
        else:
            row = row_of(tuple(int(field) for field in fields))
        read.append((number, line, row))
    return accepted(read)


def of_paper(row: paper.Row) -> Row:
    """A good row of the paper, translated."""
    if row.type == BALANCE:
        return Request(BALANCE, row.time, row.vid, row.qid)
    if row.type == EXPENDITURE:
        return Request(EXPENDITURE, row.time, row.vid, row.qid, row.xway)
    if row.type == TRAVEL_TIME:
        journey = (row.xway, row.sinit, row.send, row.dow - 1, row.tod - 1)
        return Request(TRAVEL_TIME, row.time, row.vid, row.qid, *journey)
    west = row.dir == 1
    ramp, travel = (0, row.lane) if west else (7, row.lane + 3)
    lane = ramp if row.lane in (0, 4) else travel
    place = (row.seg, row.pos % 5280 // 3, lane, 0 if west else 1)
    return Report(row.time, row.vid, row.spd, row.xway, *place)


def to_text(rows: Iterable[Row]) -> str:
    """A flat file."""
    return "".join(",".join(map(str, row.row())) + "\n" for row in rows)


# -- trips and accidents ----------------------------------------------------------------------


def trips_of(reports: list[Report]) -> list[list[Report]]:
    """A report starts a trip unless the VID's last report on this XWay is exactly 30 s older."""
    last: dict[tuple[int, int], list[Report]] = {}
    trips = []
    for report in sorted(reports, key=lambda report: report.time):
        trip = last.get((report.vid, report.xway))
        if trip is None or report.time - trip[-1].time != 30:
            trip = last[report.vid, report.xway] = []
            trips.append(trip)
        trip.append(report)
    return trips


def stops_of(trips: list[list[Report]]) -> dict[Segment, dict[int, set[int]]]:
    """The vehicles that are stopped, by segment and second."""
    times: dict[tuple[int, int], list[int]] = defaultdict(list)
    for trip in trips:
        times[trip[0].vid, trip[0].xway] += [report.time for report in trip]
    stopped: dict[Segment, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for trip in trips:
        for i in range(3, len(trip)):
            four = trip[i - 3 : i + 1]
            if len({report.position for report in four}) > 1:
                continue
            here = trip[i]
            later = [time for time in times[here.vid, here.xway] if time > here.time]
            for second in range(here.time, min([here.time + 30, *later])):
                stopped[here.segment][second].add(here.vid)
    return stopped


class Accidents:
    """The seconds at which there is an accident, by segment."""

    def __init__(self, trips: list[list[Report]]) -> None:
        self.seconds = {
            segment: {second for second, vids in by_second.items() if len(vids) >= 2}
            for segment, by_second in stops_of(trips).items()
        }

    def downstream(self, report: Report, nearest: int) -> bool:
        """Whether there is an accident `nearest` to 5 segments downstream at a report's second."""
        step = 1 if report.dir == 1 else -1
        return any(
            report.time
            in self.seconds.get((report.xway, report.mile + step * away, report.dir), ())
            for away in range(nearest, 6)
        )

    def detections(self) -> list[tuple[int, Segment]]:
        return [
            (second, segment)
            for segment, seconds in self.seconds.items()
            for second in seconds
            if second - 1 not in seconds
        ]


def alerts(reports: list[Report], accidents: Accidents) -> list[tuple[int, ...]]:
    """(second, 1, VID, XWay, Mile, Dir) for everybody who is upstream of a detected accident."""
    by_vehicle: dict[tuple[int, int], list[Report]] = defaultdict(list)
    for report in reports:
        by_vehicle[report.vid, report.xway].append(report)
    found = []
    for second, (xway, mile, dir) in accidents.detections():
        step = 1 if dir == 1 else -1
        upstream = {(xway, mile - step * away, dir) for away in range(1, 6)}
        for (vid, _), theirs in by_vehicle.items():
            past = [report for report in theirs if report.time <= second]
            if not past:
                continue
            last = max(past, key=lambda report: report.time)
            if second - last.time < 30 and last.segment in upstream:
                found.append((second, 1, vid, xway, mile, dir))
    return found


# -- tolls ------------------------------------------------------------------------------------


class Statistics:
    """speed(b) and n(b) of a segment."""

    def __init__(self, reports: list[Report]) -> None:
        self.by_segment: dict[Segment, list[Report]] = defaultdict(list)
        for report in reports:
            self.by_segment[report.segment].append(report)
        self._known: dict[tuple[Segment, int], tuple[Fraction | None, int]] = {}

    def at(self, segment: Segment, b: int) -> tuple[Fraction | None, int]:
        if (segment, b) not in self._known:
            there = self.by_segment[segment]
            speeds = [report.speed for report in there if b - 300 <= report.time < b]
            vids = {report.vid for report in there if b - 60 <= report.time < b}
            mean = Fraction(sum(speeds), len(speeds)) if speeds else None
            self._known[segment, b] = mean, len(vids)
        return self._known[segment, b]


class Event(NamedTuple):
    """What a report means for the accounts."""

    report: Report
    enters: bool
    leaves: Report | None  # the report with which the segment left behind was entered
    exits: bool


def events_of(trips: list[list[Report]]) -> list[Event]:
    events = []
    for trip in trips:
        entered = trip[0]
        has_travelled = has_exited = False
        for i, report in enumerate(trip):
            enters = i == 0 or report.segment != trip[i - 1].segment
            exits = report.on_ramp and has_travelled and not has_exited
            events.append(Event(report, enters, entered if enters and i > 0 else None, exits))
            has_travelled = has_travelled or not report.on_ramp
            has_exited = has_exited or exits
            if enters:
                entered = report
    return events


def travel_time(request: Request, history: SegmentHistory, constants: Constants) -> tuple[int, int]:
    """(TravelTime, Toll) of a journey; both ends are included."""
    east = request.minit <= request.mend
    step = 1 if east else -1
    y, toll = Fraction(request.tod), 0
    for mile in range(request.minit, request.mend + step, step):
        minute = floor(y) % 1440 + 1
        lav, cnt = history.means(request.dow + 1, minute, request.xway, 0 if east else 1, mile)
        y += 60 / max(lav, Fraction(1))
        if lav < 40 and floor(cnt) > 150:
            toll += constants.basetoll * (floor(cnt) - 150) ** 2
    return floor(60 * (y - request.tod) + Fraction(1, 2)), toll


def money(
    events: list[Event], requests: list[Request], statistics: Statistics, accidents: Accidents,
    constants: Constants,
) -> list[tuple[int, ...]]:  # fmt: skip
    """Notifications, balances and expenditures, second by second."""
    found: list[tuple[int, ...]] = []
    account: dict[tuple[int, int], int] = defaultdict(int)  # by VID and XWay
    issued: dict[Report, int] = {}
    by_second: dict[int, tuple[list[Event], list[Request]]] = defaultdict(lambda: ([], []))
    for event in events:
        by_second[event.report.time][0].append(event)
    for request in requests:
        by_second[request.time][1].append(request)

    def total(vid: int) -> int:
        return sum(amount for (whose, _), amount in account.items() if whose == vid)

    for second in sorted(by_second):
        now, asked = by_second[second]
        for event in now:
            report = event.report
            if not event.enters:
                continue
            speed, n = statistics.at(report.segment, second // 60 * 60)
            toll = 0
            slow = speed is not None and speed < 40
            if slow and n > 150 and not accidents.downstream(report, 0):
                toll = constants.basetoll * (n - 150) ** 2
            if toll and total(report.vid) >= constants.ftmin:
                toll //= 2
            issued[report] = toll
            sent = -1 if speed is None else floor(speed)
            found.append((second, 0, report.vid, toll, sent, 0))
        for event in now:
            report = event.report
            if event.leaves is not None:
                account[report.vid, report.xway] += issued[event.leaves]
            if event.exits and accidents.downstream(report, 1):
                account[report.vid, report.xway] -= constants.basecredit
        for request in asked:
            if request.type == BALANCE:
                found.append((second, 2, request.qid, total(request.vid), 0, 0))
            elif request.type == EXPENDITURE:
                spent = account.get((request.vid, request.xway), 0)
                found.append((second, 3, request.qid, spent, 0, 0))
    return found


def answers(
    rows: Iterable[Row],
    segment_history: Iterable[SegmentRow] | None = None,
    constants: Constants = USUAL,
) -> list[tuple[int, ...]]:
    """Every answer to accepted rows as (second of its cause, Type, f1, f2, f3, f4), sorted.

    >>> answers([Report(5, 7, 50, 0, 2, 100, 5, 1), Request(BALANCE, 9, 7, 3)])
    [(5, 0, 7, 0, -1, 0), (9, 2, 3, 0, 0, 0)]
    """
    everything = list(rows)
    reports = [row for row in everything if isinstance(row, Report)]
    requests = [row for row in everything if isinstance(row, Request)]
    trips = trips_of(reports)
    accidents = Accidents(trips)
    found = alerts(reports, accidents)
    found += money(events_of(trips), requests, Statistics(reports), accidents, constants)
    history = None if segment_history is None else SegmentHistory(segment_history)
    for request in requests:
        if request.type == TRAVEL_TIME:
            known = history is not None
            told = travel_time(request, history, constants) if known else (-1, -1)
            found.append((request.time, 4, request.qid, *told, 0))
    return sorted(found)
