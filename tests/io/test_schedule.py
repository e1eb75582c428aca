"""Sources are processed side by side, and a stop ends all of them at the same second."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

import xstream as xs
from xstream.io.paced_rows import PacedRows
from xstream.io.schedule import NO_LIMIT, Schedule
from xstream.testing import ManualClock


@dataclass(frozen=True)
class Rows:
    """Rows that have nothing but their times."""

    times: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.times)

    def part(self, begin: int, end: int) -> Rows:
        return Rows(self.times[begin:end])


def chunks_of(seconds: list[int], length: int = 4) -> Iterator[Rows]:
    """One row in each of some seconds, a few seconds a chunk."""
    for at in range(0, len(seconds), length):
        yield Rows(np.array(seconds[at : at + length], np.int64))


def schedule_of(speed: float | None, limit_s: int = NO_LIMIT) -> Schedule:
    return Schedule(xs.io.StreamTime(speed, clock=ManualClock()), limit_s)


def given(schedule: Schedule, files: list[list[int]], stop_after: int = 10**9) -> list[list[int]]:
    """The seconds of the rows that each file gives, asked in turn; stopped after some turns."""
    paces: list[PacedRows[Rows]] = [PacedRows(schedule) for _ in files]
    sources = [
        pace.given(chunks_of(seconds)) for pace, seconds in zip(paces, files, strict=True)
    ]  # fmt: skip
    found: list[list[int]] = [[] for _ in files]
    going, turns = set(range(len(files))), 0
    while going:
        for i in sorted(going):
            item = next(sources[i], None)
            if item is None:
                going.discard(i)
            elif item[0] is not None:
                found[i] += item[0].times.tolist()
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
    pace: PacedRows[Rows] = PacedRows(schedule)
    upto = [upto for _, upto in pace.given(chunks_of([1, 2, 6]))]
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


def test_rows_are_given_up_to_a_number_at_a_time() -> None:
    seconds = list(range(400))
    pace: PacedRows[Rows] = PacedRows(schedule_of(None), most_rows=30)
    chunks = [rows.times.tolist() for rows, _ in pace.given(chunks_of(seconds, 400)) if rows]
    assert [second for chunk in chunks for second in chunk] == seconds
    assert max(map(len, chunks)) == 30
