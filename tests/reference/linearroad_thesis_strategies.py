"""Adversarial traffic for the rules of the thesis: crowds, payers, pile-ups, exits and requests.

All of it is made by a function `choose`, which hypothesis or a random generator provides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests.reference.linearroad_history import SegmentRow
from tests.reference.linearroad_strategies import (
    Choose,
    chooser,
    segment_history,
)
from tests.reference.linearroad_strategies import (
    traffic as papers_traffic,
)
from tests.reference.linearroad_thesis import (
    BALANCE,
    EXPENDITURE,
    TRAVEL_TIME,
    Constants,
    Report,
    Request,
    Row,
    of_paper,
    to_text,
)

#: First miles of a stretch of eight; both ends of the road are among them.
STRETCHES = (0, 40, 92)
LENGTH = 8
GAPS = (30, 30, 30, 30, 30, 29, 31, 10, 60, 0)
MARKED = range(700, 712)  # vehicles that pay, and that are asked about


def lane_of(choose: Choose, dir: int, lanes: Sequence[int] = (1, 2, 3)) -> int:
    """A travel lane of a direction."""
    return choose(lanes) + 3 * dir


def ramp_of(dir: int) -> int:
    return 7 * dir


def onward(stretch: int, mile: int, dir: int, by: int) -> int:
    """Some miles further downstream, within the stretch."""
    return stretch + (mile - stretch + by * (1 if dir == 1 else -1)) % LENGTH


def crowd(choose: Choose, stretch: int, first_vid: int) -> list[Row]:
    """More than 150 slow vehicles in one or two segments, for one to three minutes."""
    n = choose((149, 150, 151, 152, 155, 160, 166))
    dir, xway = choose((0, 1)), choose((0, 0, 1))
    mile, start = choose(range(stretch, stretch + LENGTH)), 60 * choose((0, 1, 2))
    speeds = choose(((20,), (0,), (39, 41), (40,), (39, 40, 41, 40), (-5, 3), (39, 40), (70,)))
    spread, rounds = choose((1, 30, 59)), choose((1, 2, 4))
    rows: list[Row] = []
    for i in range(n):
        vid = first_vid + i
        for k in range(rounds):
            moved = choose((0, 0, 0, 1)) if i % 50 == 0 else 0
            here = onward(stretch, mile, dir, moved)
            speed = speeds[(i + k) % len(speeds)]
            time = start + i % spread + 30 * k
            lane = 1 + i % 3 + 3 * dir
            rows.append(Report(time, vid, speed, xway, here, 5 * i + k, lane, dir))
    return rows


def payer(choose: Choose, stretch: int, vid: int, near: Sequence[Row]) -> list[Row]:
    """A vehicle that enters a crowded segment, leaves it, comes back and exits, with gaps."""
    seed = choose(near)
    assert isinstance(seed, Report)
    time, dir, xway = seed.time + choose((30, 60, 61, 90)), seed.dir, seed.xway
    mile, lane = seed.mile, choose((ramp_of(dir), lane_of(choose, dir)))
    rows: list[Row] = []
    for _ in range(choose((2, 4, 6, 9))):
        speed = choose((30, 50))
        rows.append(Report(time, vid, speed, xway, mile, choose((7, 8)), lane, dir))
        step = choose(("on", "on", "back", "stay", "exit", "travel", "turn", "road"))
        if step in ("on", "back"):
            mile = onward(stretch, mile, dir, 1 if step == "on" else -1)
        elif step == "exit":
            lane = ramp_of(dir)
        elif step == "travel":
            lane = lane_of(choose, dir)
        elif step == "turn":
            dir = 1 - dir
            lane = ramp_of(dir) if choose((True, False)) else lane_of(choose, dir)
        elif step == "road":
            xway = 1 - xway
        time += choose(GAPS)
    return rows


def pile_up(choose: Choose, stretch: int, vids: Sequence[int]) -> list[Row]:
    """Vehicles that stop in one segment, mostly at different places; some move on or vanish."""
    dir, xway = choose((0, 1)), choose((0, 0, 1))
    mile = choose((stretch, stretch + 3, stretch + LENGTH - 1))
    start = choose((0, 60, 120))
    rows: list[Row] = []
    for vid in vids:
        time = start + choose((0, 0, 1, 29, 30, 31, 60, 90))
        offset, lane = (
            choose((5, 5, 900)),
            choose((ramp_of(dir), lane_of(choose, dir), 2 + 3 * dir)),
        )
        here = mile if choose((True, True, True, False)) else onward(stretch, mile, dir, 1)
        for _ in range(choose((3, 4, 4, 5, 7, 9))):
            rows.append(Report(time, vid, choose((0, 0, 4)), xway, here, offset, lane, dir))
            time += 30
        after = choose(("vanish", "move", "cut", "cut", "again", "lane"))
        last = rows[-1]
        assert isinstance(last, Report)
        if after == "move":
            rows.append(last._replace(time=time, offset=offset + 1))
        elif after == "cut":  # a report too early: another trip
            rows.append(last._replace(time=last.time + choose((1, 15)), offset=choose((5, 900))))
        elif after == "lane":
            rows.append(last._replace(time=time, lane=ramp_of(dir)))
        elif after == "again":
            begin = time + choose((0, 1, 30))
            rows += [last._replace(time=begin + 30 * k) for k in range(5)]
    return rows


def passers(choose: Choose, stretch: int, first_vid: int) -> list[Row]:
    """Vehicles that drive along the stretch with an exit now and then; near any accident."""
    rows: list[Row] = []
    for k in range(choose((2, 5, 8))):
        dir, xway = choose((0, 1)), choose((0, 0, 1))
        mile, time = (
            choose(range(stretch, stretch + LENGTH)),
            choose((0, 31, 90, 119, 150, 179, 211)),
        )
        lane = choose((ramp_of(dir), lane_of(choose, dir)))
        for _ in range(choose((1, 3, 5, 8))):
            rows.append(Report(time, first_vid + k, 55, xway, mile, 10 * k, lane, dir))
            lane = choose((ramp_of(dir), lane_of(choose, dir), lane))
            mile = onward(stretch, mile, dir, choose((0, 0, 1)))
            time += choose(GAPS)
    return rows


def requests(choose: Choose, reports: Sequence[Row], stretch: int, many: int) -> list[Row]:
    """Requests in the second of a report, or near it."""
    found: list[Row] = []
    marked = [row for row in reports if row.vid in MARKED] or list(reports)
    for qid in range(many):
        about = choose(marked)
        time = max(about.time + choose((0, 0, 0, -1, 1, 30)), 0)
        vid = choose((about.vid, about.vid, about.vid, 9_999_999))
        kind = choose((BALANCE, BALANCE, EXPENDITURE, EXPENDITURE, TRAVEL_TIME))
        if kind == BALANCE:
            found.append(Request(kind, time, vid, qid))
        elif kind == EXPENDITURE:
            found.append(Request(kind, time, vid, qid, choose((0, 1, 5))))
        else:
            ends = range(stretch, stretch + 6)
            when = (choose((1, 4, 6, 0)), choose((0, 4, 1435, 1438, 1439, 700)))
            found.append(
                Request(kind, time, vid, qid, choose((0, 1, 5)), choose(ends), choose(ends), *when)
            )
    return found


def in_order(rows: Sequence[Row], seed: int) -> list[Row]:
    """Rows by Time, in any order within a second; a second report stays behind the first."""
    rng = Random(seed)
    by_second: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_second[row.time].append(row)
    result: list[Row] = []
    for second in sorted(by_second):
        unlike: dict[tuple[object, ...], list[Row]] = defaultdict(list)
        for row in by_second[second]:
            key = (row.vid, row.xway) if isinstance(row, Report) else (id(row),)
            unlike[key].append(row)
        order = list(unlike.values())
        rng.shuffle(order)
        result += [row for group in order for row in group]
    return result


class Scenario(NamedTuple):
    """An input as rows and as a flat file, a history and the constants of the tariff."""

    rows: list[Row]
    text: str
    segment_history: list[SegmentRow]
    constants: Constants

    def __repr__(self) -> str:
        return f"Scenario(text={self.text!r}, constants={self.constants})"


def traffic(choose: Choose, crowds: int, payers: int, pile_ups: int, asked: int) -> list[Row]:
    """Some of everything on one stretch of two expressways."""
    stretch = choose(STRETCHES)
    rows: list[Row] = []
    for k in range(crowds):
        rows += crowd(choose, stretch, choose((2000, 3000 + 1000 * k)))
    crowded = list(rows)
    for k in range(payers if crowded else 0):
        rows += payer(choose, stretch, MARKED[k % len(MARKED)], crowded[:: len(crowded) // 7 or 1])
    for k in range(pile_ups):
        low = 100 + 3 * k
        rows += pile_up(choose, stretch, range(low, low + choose((2, 2, 3, 4))))
    rows += passers(choose, stretch, choose((500, 700)))
    return [*rows, *requests(choose, rows, stretch, asked)]


def constants(choose: Choose) -> Constants:
    return Constants(choose((2, 2, 1, 3)), choose((50, 7)), choose((500, 0, 8, 9, 50, 200, 2)))


def history(seed: int) -> list[SegmentRow]:
    """History of the three stretches, with counts around 150."""
    rng = np.random.default_rng(seed)
    rows = segment_history(rng, STRETCHES[seed % 3])
    return [(*row[:6], row[6] + 95, row[7]) for row in rows]


def scenario(seed: int) -> Scenario:
    """A few thousand rows, always the same for a seed; odd ones include the paper's traffic."""
    choose = chooser(np.random.default_rng(seed))
    rows = traffic(choose, crowds=5, payers=30, pile_ups=8, asked=400)
    if seed % 2:
        rows += [of_paper(row) for row in papers_traffic(choose, 30, 12, 3, 60, 20)]
    rows = in_order(rows, seed)
    return Scenario(rows, to_text(rows), history(seed), constants(choose))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Small adversarial inputs."""

    def choose(options):  # type: ignore[no-untyped-def]
        return draw(st.sampled_from(options))

    counts = [draw(st.integers(0, most)) for most in (2, 6, 3, 8)]
    seed = draw(st.integers(0, 2**16))
    rows = traffic(choose, *counts)
    if choose((True, False)):
        rows += [of_paper(row) for row in papers_traffic(choose, 4, 6, 0, 3, 2)]
    rows = in_order(rows, seed)
    return Scenario(rows, to_text(rows), history(seed), constants(choose))
