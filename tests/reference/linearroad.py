"""Linear Road in plain Python, three rule sets: the oracle for the engine's answers.

Written from the rules page (linear-road.md; "section" below means its sections) and, where that
is silent, from the VLDB 2004 paper. It passes over the whole input at once, keeps every report,
and computes means as fractions: slow, and with nothing in common with the engine.

* `parse(text)` reads a flat file (`linearroad_input`).
* `answers(rows, rules, tolls, segment_history)` gives every answer, without Emit, sorted.

Readings, where the page leaves something open
----------------------------------------------
Input:

1.  Checks are made in the order of the page's list of reasons: field count, not an integer (of any
    field), out of int32 (of any field), unknown type, domains in the header's order, out of order,
    second report. The first that fails is the reason.
2.  An empty line has one (empty) field: `field count`. The end of the last line need not be a
    newline; a newline at the end does not begin another line. One CR before a newline is ignored
    and is not part of the row as read; any other CR makes its field `not an integer`.
3.  Numbers count by value: `-0` and `007` are integers, and leading zeros are never out of int32.
    Fields that a query does not need must still be integers in int32.
4.  Time and VID are checked for every type, since every query's tuple in the paper has them; so a
    travel-time request with VID -1 is rejected. Spd is never checked.
5.  A second report is one whose (VID, XWay, Time) an *accepted* report has; Dir is no part of it.
6.  Out of order is decided by all accepted rows, queries included.

Trips and triggers:

7.  `walmart`: the first report of a (VID, XWay, Dir) starts its first trip, on any lane. Without a
    lane-0 report a gap of any length continues the trip.
8.  `walmart`: "the last one" of "more than 60 s after the last one" is the last report that was not
    ignored; so after an exit the 60 s count from the lane-4 report. 60 s exactly continues.
9.  `walmart`: the lane-4 report itself is not ignored: it counts in the statistics, may differ from
    a stopped position, and charges the toll of the segment left behind.
10. `walmart`: ignored reports trigger nothing, charge nothing and are nobody's "previous report".

Accidents:

11. Two vehicles are two VIDs.
12. `paper`: "its first report that differs or starts a trip" is the vehicle's next report on that
    XWay after the last equal one, since a report 30 s later at the same place is an equal one.
13. `brandeis`: "each exactly 30 s after the last" is the vehicle's last report on that XWay, of any
    kind: a report in between breaks the chain.
14. `brandeis`: "from the first to the last minute" is each minute with such a report. While two
    vehicles go on standing, every minute has one, so nothing lies between first and last; and two
    accidents of a place are not joined, since every rule is decided by minutes before m.
15. `walmart`: the earlier vehicle must still be stopped at the second of the later one's fourth
    report: if its report elsewhere is of that very second, or earlier, there is no accident.
16. `walmart`: an accident that begins and ends in one minute has no accident minute, but is still
    the first of its (XWay, Dir, Seg), and no other follows.
17. `walmart`: accidents of one (XWay, Dir, Seg) that start in the same second are all the first
    (nothing may depend on the order inside a second); the minutes of each count.
18. `walmart`: a vehicle that vanished or returned in a new trip stays stopped at the old place, so
    another that stops there later makes an accident with it.
19. The Seg of walmart's "(XWay, Dir, Seg)" is the accident's, floor(Pos / 5280).

Accounts and history:

20. `brandeis`: "the vehicle's next notification" is the VID's next one, on any expressway, with a
    later Time; notifications of one VID in one second (on two expressways) do not charge each
    other, since nothing may depend on the order inside a second.
21. A charge at time t counts in a balance asked at time t: reports come before queries.
22. `round` of TravelTime: half a second goes up (the only tie rule the page has).
23. No SegmentHistory means `None`; one without rows is loaded, and all its means are 0.
24. Daily expenditure without TollHistory is 0, as where there is no row.
25. Sinit = Send is a journey of no segment: TravelTime 0, Toll 0.
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
    """Section 2, `trip`, `paper`: a new trip unless the last report on this XWay is 30 s older."""
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
    """Section 2, `trip`, `walmart`: per (VID, XWay, Dir), without the ignored reports."""
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
    """Section 2, `trigger`, `paper` and `walmart`: Seg alone decides."""
    return [
        report
        for i, report in enumerate(trip)
        if report.lane != 4 and (i == 0 or report.seg != trip[i - 1].seg)
    ]


def brandeis_triggers(reports: list[Row]) -> list[Row]:
    """Section 2, `trigger`, `brandeis`: the first Lane != 4 report of a (VID, XWay, Dir, Seg)."""
    first: dict[tuple[int, int, int, int], Row] = {}
    for report in sorted(reports, key=lambda report: report.time):
        if report.lane != 4:
            first.setdefault((report.vid, report.xway, report.dir, report.seg), report)
    return list(first.values())


class Statistics:
    """Section 2: n and LAV, from the reports that count (all lanes)."""

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
    """Section 2, last row of the table: an accident minute m - 1 in Seg .. Seg+4 or Seg-4."""
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
    """Section 2: "At a trigger q at minute m = M(q.Time)"."""
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
    """Section 2, charging, `paper` and `walmart`: at the report that shows another segment."""
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
    """Section 2, charging, `brandeis`: at the Time of the vehicle's next notification."""
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
    """Every notification and every charge of a run, by one column of section 2's table."""
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
    """Every answer to accepted rows, in the formats of section 4 without Emit, sorted.

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
        if row.type == BALANCE:  # section 3: exact for the request's own time
            balance = sum(c.toll for c in charged.get(row.vid, []) if c.time <= row.time)
            found.append((2, row.time, row.time, row.qid, balance))
        elif row.type == EXPENDITURE:
            found.append((3, row.time, row.qid, spent.get((row.vid, row.day, row.xway), 0)))
        elif row.type == TRAVEL_TIME:
            estimate = (-1, -1) if history is None else travel_time(row, history)
            found.append((4, row.time, row.qid, *estimate))
    return sorted(found)
