"""Linear Road inputs that hit the rules: hypothesis strategies and a quick seeded generator.

Traffic is made by small builders that ask a `Choose` for every decision; hypothesis answers it in
`inputs()`, a numpy generator in `scenario(seed)`. Roads are a handful of segments at one end or in
the middle of an expressway, with few places to stand, so that cars meet, stop together, and are
seen by others within four segments; times lie on, just before and just after minutes' borders.

Rows come ordered by Time, as a flat file holds them. They may contain a second report of a vehicle
in one second: pass them through `parse(to_text(rows))`, as the engine reads them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st

from tests.reference.linearroad_history import SegmentRow, TollRow, day_of_week
from tests.reference.linearroad_input import BALANCE, EXPENDITURE, REPORT, TRAVEL_TIME, Row, to_text

T = TypeVar("T")
SEGMENT_FEET = 5280
FAR_VID = 2**31 - 1
#: First segments of roads of six: both caps of the five segments downstream, and the middle.
ROADS = (0, 94, 47)
VIDS = (0, 1, 2, 3, 4, 5, 777, 65_536, 1_234_567_890, FAR_VID - 1, FAR_VID)
#: Mostly the regular 30 s, so that trips, stops and charges really come about.
GAPS = (30, 30, 30, 30, 30, 30, 7, 29, 31, 60, 61, 90)
LONG_GAPS = (30, 31, 60, 61, 89, 90, 120, 300, 301, 420, 1000)
SPEEDS = (0, 0, 10, 39, 40, 41, 55, 100, -5, 200)


class Choose(Protocol):
    """Picks one of several options."""

    def __call__(self, options: Sequence[T]) -> T: ...


def chooser(rng: np.random.Generator) -> Choose:
    """A `Choose` that draws from a numpy generator."""

    def choose(options: Sequence[T]) -> T:
        return options[int(rng.integers(len(options)))]

    return choose


class Car:
    """One vehicle that drives about a road of six segments and reports as it goes."""

    def __init__(self, choose: Choose, vid: int, road: int, start: int, xways: int) -> None:
        self.choose = choose
        self.xways = range(xways)
        self.road = road
        self.rows: list[Row] = []
        self.row = Row(REPORT, start, vid, 0, choose(self.xways), 1, choose((0, 0, 1)), road)
        self.move(segment=choose((2, 2, 3)), lane=choose((1, 1, 1, 2, 0, 4)))
        self.report(gap=0)

    def move(self, segment: int, lane: int | None = None, feet: int | None = None) -> None:
        """Go to a place in the road's segment 0..5, without reporting."""
        seg = self.road + segment
        feet = self.choose((0, 0, 0, 1, SEGMENT_FEET - 1)) if feet is None else feet
        lane = self.row.lane if lane is None else lane
        self.row = self.row._replace(seg=seg, pos=seg * SEGMENT_FEET + feet, lane=lane)

    def report(self, gap: int, spd: int | None = None) -> None:
        """Report the present place `gap` seconds after the last report."""
        spd = self.choose(SPEEDS) if spd is None else spd
        self.row = self.row._replace(time=self.row.time + gap, spd=spd)
        self.rows.append(self.row)

    @property
    def segment(self) -> int:
        return self.row.seg - self.road

    def stand(self) -> None:
        """Report one place several times: often enough to be stopped, or just not."""
        spd = self.choose((0, 0, 0, 3))
        for _ in range(self.choose((2, 3, 3, 4, 5, 7))):
            self.report(30, spd)

    def stand_irregularly(self) -> None:
        """Report one place at other gaps than 30 s: stopped under `walmart` alone."""
        for _ in range(4):
            self.report(self.choose(GAPS), 0)

    def cut(self) -> None:
        """An irregular report, elsewhere or not, that ends the trip within its 30 s."""
        if self.choose((True, False)):
            self.move(self.segment, self.choose((1, 2)), self.choose((0, 1)))
        self.report(self.choose((1, 7, 29)))

    def vanish(self) -> None:
        """Return after a gap, by the entry or where it was, in the same place or elsewhere."""
        if self.choose((True, False)):
            self.move(self.choose((1, 2, 3)), self.choose((0, 0, 1)))
        self.report(self.choose(LONG_GAPS))

    def drive(self) -> None:
        """On to another segment, mostly the next."""
        step = self.choose((1, 1, 1, -1, 2, 0)) * (1 if self.row.dir == 0 else -1)
        self.move((self.segment + step) % 6, self.choose((1, 1, 1, 2, 0)))
        self.report(self.choose(GAPS))

    def leave(self) -> None:
        """To the exit ramp of this segment or the next, and perhaps a little further."""
        self.move((self.segment + self.choose((0, 1))) % 6, 4)
        self.report(30)
        for _ in range(self.choose((0, 0, 1))):
            self.move((self.segment + self.choose((0, 1))) % 6, self.choose((1, 4)))
            self.report(self.choose(GAPS))

    def enter(self) -> None:
        """By the entry ramp, about 60 s after the last report."""
        self.move(self.choose((1, 2, 3)), 0)
        self.report(self.choose((30, 59, 60, 61, 90)))

    def bounce(self) -> None:
        """Several reports within a minute: segments A, B, A, or A alone."""
        there, other = self.segment, (self.segment + self.choose((0, 1))) % 6
        for segment in (other, there):
            self.move(segment)
            self.report(self.choose((5, 10, 30)))

    def turn(self) -> None:
        """The other direction, in the same segment."""
        self.row = self.row._replace(dir=1 - self.row.dir)
        self.report(30)

    def change_road(self) -> None:
        """Another expressway; with a gap of 0, two expressways in one second."""
        self.row = self.row._replace(xway=self.choose(self.xways))
        self.report(self.choose((0, 1, 30, 30)))

    def misplace(self) -> None:
        """A Seg that is not floor(Pos / 5280)."""
        self.row = self.row._replace(seg=self.road + (self.segment + 1) % 6)
        self.report(30)

    def stutter(self) -> None:
        """A second report in one second: rejected, unless on another expressway."""
        self.move(self.segment, self.choose((1, 2)))
        self.report(0)

    def act(self) -> None:
        """One of the above, standing and driving most often."""
        acts = (self.stand, self.stand, self.stand, self.drive, self.drive, self.drive, self.cut)
        rare = (self.stand_irregularly, self.vanish, self.leave, self.enter, self.bounce)
        odd = (self.turn, self.change_road, self.misplace, self.stutter)
        self.choose((*acts, *acts, *rare, *rare, *odd))()


def car(choose: Choose, vid: int, road: int, start: int, acts: int, xways: int = 2) -> list[Row]:
    """The reports of one vehicle that does `acts` things."""
    made = Car(choose, vid, road, start, xways)
    for _ in range(acts):
        made.act()
    return made.rows


def wreck(choose: Choose, vids: Sequence[int], road: int, start: int) -> list[Row]:
    """Vehicles that stand at one place and overlap in part, so that an accident may come about."""
    rows = []
    dir, xway, lane = choose((0, 1)), choose((0, 0, 1)), choose((1, 2, 2, 0, 4))
    seg = road + choose((0, 2, 3, 5))
    pos = seg * SEGMENT_FEET + choose((0, 1))
    spd = choose((0, 0, 0, 5))
    for vid in vids:
        time = start + choose((0, 1, 29, 30, 31, 59, 60, 90, 120))
        for _ in range(choose((3, 4, 4, 5, 6, 8))):
            rows.append(Row(REPORT, time, vid, spd, xway, lane, dir, seg, pos))
            time += 30
        after = choose(("vanish", "vanish", "drive", "cut", "lane", "again"))
        last = rows[-1]
        if after == "drive":
            rows.append(last._replace(time=time, pos=pos + 1000, spd=20))
        elif after == "cut":
            rows.append(last._replace(time=last.time + 7, pos=pos + choose((0, 1))))
        elif after == "lane":
            rows.append(last._replace(time=time, lane=choose((3, 4))))
        elif after == "again":
            again = time + choose((1, 31, 60, 90))
            rows += [last._replace(time=again + 30 * k, lane=choose((lane, 0))) for k in range(5)]
    return rows


def platoon_speed(kind: str, i: int, k: int, n: int) -> int:
    """Speed of the i-th of n vehicles at its k-th report; all but `fast` have LAV 40 or less."""
    if kind == "forty":  # each vehicle's mean over two reports and the mean over vehicles are 40
        return (40, 37, 43)[i % 3 if n % 3 == 0 else 0] + (1, -1)[k % 2]
    if kind == "thirds":  # means with thirds; a third of the vehicles below 40, two above
        return (38, 41, 41)[(i + k) % 3]
    if kind == "just below":
        return 39 if (i, k) == (0, 0) else 40
    if kind == "half":
        return (39, 40)[i % 2]
    return {"slow": 20, "still": 0, "negative": -5, "fast": 70}[kind]


def platoon(choose: Choose, first_vid: int, road: int, start: int) -> list[Row]:
    """Many vehicles that drive together: cheap dense traffic, quoted and charged."""
    n = choose((51, 52, 54, 60, 51, 50, 49))
    kind = choose(("slow", "still", "negative", "just below", "half", "forty", "thirds", "fast"))
    xway, dir = choose((0, 0, 1)), choose((0, 0, 1))
    segment = choose((1, 2)) if dir == 0 else choose((4, 3))
    reports, per_segment = choose((2, 5, 8, 8)), choose((1, 2, 2, 3))
    lanes = choose(((1, 2, 3), (0, 1, 2), (1, 4)))
    spread = choose((1, 29, 30, 60))
    rows = []
    for i in range(n):
        for k in range(reports):
            seg = road + (segment + (k // per_segment) * (1 if dir == 0 else -1)) % 6
            pos = seg * SEGMENT_FEET + 40 * i + 7 * k + 2
            time = start + i % spread + 30 * k
            spd = platoon_speed(kind, i, k, n)
            lane = lanes[i % len(lanes)]
            rows.append(Row(REPORT, time, first_vid + i, spd, xway, lane, dir, seg, pos))
    return rows


#: What payers do after they have entered a segment: (gap, segments onward, lane) by turns.
PAYERS_WAYS = (
    ((30, 1, 1), (30, 1, 1), (30, 1, 4)),
    ((30, 0, 1), (30, 1, 4), (30, 1, 1)),
    ((30, 1, 2), (30, -1, 2), (30, 1, 2)),
    ((30, 0, 4), (30, 1, 0), (30, 1, 1)),
    ((37, 1, 1), (30, 1, 0)),
    ((61, 1, 0), (30, 1, 1)),
    ((30, 2, 4), (60, 0, 0), (30, 1, 1)),
)
PAYERS = range(8000, 8008)


def payers(choose: Choose, crowd: Sequence[Row], road: int) -> list[Row]:
    """Vehicles that enter a crowd's first segment in the minute after it, and drive on."""
    first = crowd[0]
    onward = 1 if first.dir == 0 else -1
    rows = []
    for vid in range(choose(PAYERS[:-2]), PAYERS[-1]):
        time = (first.time // 60 + 1) * 60 + choose((0, 1, 31))
        row = first._replace(vid=vid, time=time, lane=choose((1, 1, 1, 0, 4)))
        rows.append(row)
        for gap, step, lane in choose(PAYERS_WAYS):
            seg = road + (row.seg - road + onward * step) % 6
            place = {"seg": seg, "pos": seg * SEGMENT_FEET + 9, "lane": lane}
            row = row._replace(time=row.time + gap, **place)
            rows.append(row)
    return rows


#: Days of the week, expressways, minutes of the day that the small histories know.
HISTORY_DOWS, HISTORY_XWAYS = (2, 5), (0, 1)
HISTORY_MINUTES = (*range(1434, 1441), *range(1, 13))


def query(choose: Choose, reports: Sequence[Row], road: int, qid: int) -> Row:
    """A request about a report, in its second or near it; unneeded fields are -1 or anything."""
    about = choose(reports)
    time = max(about.time + choose((0, 0, 0, -1, 1, 30, 61, 600)), 0)
    vid = choose((about.vid, about.vid, about.vid, 999_999))
    kind = choose((BALANCE, BALANCE, BALANCE, EXPENDITURE, TRAVEL_TIME))
    row = Row(kind, time, vid, qid=qid)
    if choose((True, False)):
        row = row._replace(spd=60, lane=2, dir=1, seg=road, pos=road * SEGMENT_FEET, xway=9)
    if kind == EXPENDITURE:
        return row._replace(xway=choose((0, 1, 5)), day=choose((1, 2, 3, 69)))
    if kind == TRAVEL_TIME:
        ends = range(road, road + 6)
        row = row._replace(xway=choose((0, 0, 1, 5)), sinit=choose(ends), send=choose(ends))
        return row._replace(dow=choose((2, 5, 5, 7)), tod=choose((1, 5, 1436, 1439, 1440, 700)))
    return row


def audits(reports: Sequence[Row], vehicles: int) -> list[Row]:
    """Balances of payers and some others at each of their reports, just before, and long after."""
    vids = sorted({row.vid for row in reports})
    audited = {
        *vids[:: max(len(vids) // vehicles, 1)][:vehicles],
        *(vid for vid in PAYERS if vid in vids),
    }
    times = sorted(
        {(row.vid, row.time + after) for row in reports if row.vid in audited for after in (-1, 0)}
    )
    times += [(vid, reports[-1].time + 3600) for vid in sorted(audited)]
    return [Row(BALANCE, max(time, 0), vid, qid=10_000 + k) for k, (vid, time) in enumerate(times)]


def observers(choose: Choose, road: int) -> list[Row]:
    """A new vehicle each minute and direction, which is told of accidents and of LAV."""
    xway, late = choose((0, 0, 1)), choose((0, 59, 30))
    return [
        Row(REPORT, 60 * m + late, 5000 + 2 * m + dir, 55, xway, 3, dir, seg, seg * SEGMENT_FEET)
        for m in range(12)
        for dir, seg in ((0, road + 2), (1, road + 3))
    ]


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows ordered by Time; rows of one second stay as they were."""
    return sorted(rows, key=lambda row: row.time)


def shifted(rows: Iterable[Row], seconds: int) -> list[Row]:
    """The same rows at a later time."""
    return [row._replace(time=row.time + seconds) for row in rows]


def permuted_within_seconds(rows: Sequence[Row], seed: int) -> list[Row]:
    """Rows in another order inside each second; second reports stay behind the first."""
    rng = random.Random(seed)
    result: list[Row] = []
    for _, group in groupby(rows, key=lambda row: row.time):
        second = list(group)
        waiting: dict[tuple[int, ...], list[Row]] = defaultdict(list)
        for row in second:
            waiting[(row.vid, row.xway) if row.type == REPORT else row].append(row)
        rng.shuffle(second)
        for row in second:
            key = (row.vid, row.xway) if row.type == REPORT else row
            result.append(waiting[key].pop(0))
    return result


def traffic(
    choose: Choose, cars: int, acts: int, platoons: int, queries: int, audited: int
) -> list[Row]:
    """Cars, wrecks, platoons and requests on one road of two expressways, ordered by Time."""
    road = choose(ROADS)
    vids = [VIDS[k % len(VIDS)] + 10_000 * (k // len(VIDS)) for k in range(cars)]
    vids = sorted({vid % 2**31 for vid in vids})
    rows: list[Row] = []
    for vid in vids:
        rows += car(choose, vid, road, choose((0, 1, 25, 30, 59, 60, 61, 200)), acts)
    for k in range(max(cars // 3, 1)):
        # VIDs of wrecks overlap with the cars' now and then, and so break each other's chains.
        low = choose((100, 100, 0)) + 3 * k
        crash = range(low, low + choose((2, 2, 3)))
        rows += wreck(choose, crash, road, 60 * choose((0, 1, 2, 5)))
    for k in range(platoons):
        start = choose((0, 30, 60, 119, 120, 300))
        crowd = platoon(choose, choose((2000, 3000, 3000 + 1000 * k)), road, start)
        rows += crowd + payers(choose, crowd, road)
    if choose((True, True, False)):
        rows += observers(choose, road)
    rows = in_order(rows)
    requests = [query(choose, rows, road, qid) for qid in range(queries)]
    return in_order([*rows, *requests, *audits(rows, audited)])


def segment_history(rng: np.random.Generator, road: int) -> list[SegmentRow]:
    """SegmentHistory for some minutes around midnight, with days and whole minutes missing."""
    days = [day for day in range(1, 71) if day_of_week(day) in HISTORY_DOWS]
    rows: list[SegmentRow] = []
    for minute in HISTORY_MINUTES:
        for xway in HISTORY_XWAYS:
            for dir in (0, 1):
                for seg in range(road, road + 6):
                    kind = rng.integers(6)
                    for day in days:
                        lav = (36, 36, int(rng.integers(0, 100)), 40, 39, 0)[kind]
                        lav += int(rng.integers(-1, 2)) if kind in (3, 4) else 0
                        cnt = int(rng.integers(45, 70))
                        if kind != 1 or rng.random() < 0.3:
                            rows.append((day, minute, xway, dir, seg, lav, cnt, 0))
    keep = rng.random(len(rows)) < 0.9
    return [row for row, kept in zip(rows, keep, strict=True) if kept]


def toll_history(rng: np.random.Generator, vids: Iterable[int]) -> list[TollRow]:
    """TollHistory for most of the vehicles, days 1, 2, 3 and 69, two expressways."""
    return [
        (vid, day, xway, int(rng.integers(0, 500)))
        for vid in vids
        for day in (1, 2, 3, 69)
        for xway in HISTORY_XWAYS
        if rng.random() < 0.7
    ]


class Scenario(NamedTuple):
    """An input as rows and as a flat file, and the history that goes with it."""

    rows: list[Row]
    text: str
    tolls: list[TollRow]
    segment_history: list[SegmentRow]

    def __repr__(self) -> str:
        """Short: hypothesis shows it, and the rows are thousands."""
        return f"Scenario(text={self.text[:200]!r}..., {len(self.rows)} rows)"


def with_history(rows: list[Row], rng: np.random.Generator) -> Scenario:
    """Rows, and small histories of their vehicles and of the road that they lie on."""
    segments = [row.seg for row in rows if row.type == REPORT]
    road = max((road for road in ROADS if road <= min(segments, default=0)), default=0)
    vids = sorted({row.vid for row in rows})
    return Scenario(rows, to_text(rows), toll_history(rng, vids), segment_history(rng, road))


def scenario(seed: int) -> Scenario:
    """A few thousand rows of adversarial traffic, always the same for a seed."""
    rng = np.random.default_rng(seed)
    choose = chooser(rng)
    rows = traffic(choose, cars=40, acts=14, platoons=9, queries=300, audited=60)
    rows = shifted(rows, choose((0, 0, 0, 17, 3600, 86_399)))
    return with_history(permuted_within_seconds(rows, seed), rng)


@st.composite
def inputs(draw: st.DrawFn, max_cars: int = 8, max_platoons: int = 2) -> list[Row]:
    """Small adversarial inputs, ordered by Time, of rows that parse; see `parse` for duplicates."""

    def choose(options: Sequence[T]) -> T:
        return draw(st.sampled_from(options))

    cars = draw(st.integers(0, max_cars))
    platoons = draw(st.integers(0, max_platoons))
    acts, queries = draw(st.integers(0, 8)), draw(st.integers(0, 6))
    rows = traffic(choose, cars, acts, platoons, queries, audited=6)
    rows = shifted(rows, draw(st.sampled_from((0, 0, 17, 3600))))
    return permuted_within_seconds(rows, draw(st.integers(0, 2**16)))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """`inputs()` with history; the history comes from a seed, which keeps it cheap."""
    return with_history(draw(inputs()), np.random.default_rng(draw(st.integers(0, 2**16))))
