"""Files are processed side by side, and a stop ends all of them at the same second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from linearroad.input import Chunk, Reject
from linearroad.run.feed import Feed
from linearroad.schema import INPUT_COLUMNS

import xstream as xs
from xstream.io.schedule import NO_LIMIT, Schedule
from xstream.testing import ManualClock


class Nobody:
    """Takes rejected rows, of which there are none here."""

    def write(self, reject: Reject, file_name: str) -> None:
        raise AssertionError(reject)


NOBODY: Any = Nobody()


class Rows:
    """A file with one report in each of some seconds, a few seconds a chunk."""

    def __init__(self, seconds: list[int], chunk: int = 4) -> None:
        self.name, self.seconds, self.chunk = "rows", seconds, chunk
        self.on_reject: Callable[[Reject], None] = lambda _: None

    def chunks(self, begin_s: int = 0) -> Iterator[Chunk]:
        for at in range(0, len(self.seconds), self.chunk):
            times = np.array(self.seconds[at : at + self.chunk], np.int64)
            columns = tuple(
                times.astype(np.int32) if name == "time" else np.zeros(len(times), np.int32)
                for name in INPUT_COLUMNS
            )
            yield Chunk(columns, times, times)

    def row(self, line: int) -> str:
        return ""


def schedule_of(speed: float | None, limit_s: int = NO_LIMIT) -> Schedule:
    return Schedule(xs.io.StreamTime(speed, clock=ManualClock()), limit_s)


def given(schedule: Schedule, files: list[list[int]], stop_after: int = 10**9) -> list[list[int]]:
    """The seconds of the rows that each file gives, asked in turn; stopped after some turns."""
    manager = xs.memory_manager("refcount-lazy")
    feeds = [
        Feed(Rows(seconds), number, schedule, NOBODY, manager)
        for number, seconds in enumerate(files)
    ]
    sources = [feed.tuples() for feed in feeds]
    found: list[list[int]] = [[] for _ in files]
    going, turns = set(range(len(files))), 0
    while going:
        for i in sorted(going):
            item = next(sources[i], None)
            if item is None:
                going.discard(i)
            else:
                found[i] += np.asarray(item[1]).tolist()
        turns += 1
        if turns == stop_after:
            schedule.stop.set()
        assert turns < 10_000, "it does not end"
    return found


FILES = [list(range(400)), list(range(0, 400, 3)), list(range(7, 90))]


@pytest.mark.parametrize("speed", [None, 100.0])
def test_every_row_is_given_once_and_in_order(speed: float | None) -> None:
    assert given(schedule_of(speed), FILES) == FILES


@pytest.mark.parametrize("speed", [None, 100.0])
def test_no_row_from_the_limit_on_is_given(speed: float | None) -> None:
    found = given(schedule_of(speed, limit_s=60), FILES)
    assert found == [[second for second in file if second < 60] for file in FILES]


@pytest.mark.parametrize("speed", [None, 100.0])
@pytest.mark.parametrize("stop_after", [1, 2, 5, 30, 33])
def test_a_stop_ends_all_files_with_the_same_second(speed: float | None, stop_after: int) -> None:
    found = given(schedule_of(speed), FILES, stop_after)
    end = max((rows[-1] for rows in found if rows), default=-1)
    assert found == [[second for second in file if second <= end] for file in FILES]
    assert end < 399


def test_a_paced_file_gives_every_second_with_its_end() -> None:
    schedule = schedule_of(100.0)
    feed = Feed(Rows([1, 2, 6]), 0, schedule, NOBODY, xs.memory_manager("refcount-lazy"))
    upto = [item[2] for item in feed.tuples()]
    assert [second for second in upto if second >= 0] == [0, 1, 2, 3, 4, 5, 6]
    assert schedule.time.wall_s() == pytest.approx(0.06)


def test_a_file_far_ahead_of_another_waits_for_it() -> None:
    schedule = Schedule(xs.io.StreamTime(None))
    here, there = schedule.join(), schedule.join()
    assert schedule.may_go(there, 0)
    assert schedule.may_go(here, schedule.slack_s)
    assert not schedule.may_go(here, schedule.slack_s + 1)
    schedule.leave(there)
    assert schedule.may_go(here, schedule.slack_s + 1)
