"""Seconds of several files are put together: all of them, or whole seconds up to a stop."""

from __future__ import annotations

from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from linearroad.queries.feeding import FOR_EVER, Backlog, Clock
from linearroad.queries.operators.handover import TABLES
from linearroad.queries.sharding import HandingWorker, Pending, together

ROUNDS = 100  # more than any of these cases takes


def batch(*seconds: int) -> dict[str, np.ndarray]:
    """One answer a second, and neither charges nor requests."""
    answers = ("kind", "time", "who", "value", "amount")
    found = {name: np.empty(0, dtype) for name, dtype in TABLES.items()}
    found |= {name: np.zeros(len(seconds), TABLES[name]) for name in answers}
    found["time"] = np.array(seconds, TABLES["time"])
    return found


def file_of(*handed_over: tuple[int, dict[str, np.ndarray]]) -> HandingWorker:
    """A worker with one file that has handed all of this over and has ended."""
    pending = Pending(Backlog())
    for item in (*handed_over, None):
        pending.batches.put(item)
    return cast(HandingWorker, SimpleNamespace(pending=[pending]))


def answered(workers: list[HandingWorker], clock: Clock) -> tuple[list[int], list[int]]:
    """The second of every answer in the order in which they come, and what was reached."""
    rounds: list[tuple[Any, ...]] = list(islice(together(workers, clock), ROUNDS))
    assert len(rounds) < ROUNDS, "it does not end"
    times = [second for one in rounds for second in np.asarray(one[1]).tolist()]
    return times, [one[0] for one in rounds]


@pytest.mark.parametrize("speed", [None, 3000.0], ids=["max", "paced"])
@pytest.mark.parametrize("first", [0, 1], ids=["earlier first", "later first"])
def test_files_that_were_stopped_at_different_seconds_end_with_the_last_common_one(
    speed: float | None, first: int
) -> None:
    clock = Clock(speed)
    clock.stop.set()
    early = file_of((3, batch(1, 3)), (10, batch(7, 10)))
    late = file_of((3, batch(2)), (200, batch(5, 10, 11, 200)))
    times, reached = answered([early, late] if not first else [late, early], clock)
    assert sorted(times) == times == [1, 2, 3, 5, 7, 10, 10]
    assert reached[-1] == 10


@pytest.mark.parametrize("speed", [None, 3000.0], ids=["max", "paced"])
def test_a_stop_that_comes_while_files_are_put_together_ends_it(speed: float | None) -> None:
    clock = Clock(speed)
    workers = [
        file_of(*((s, batch(s)) for s in range(limit))) for limit in (60, 200)
    ]  # neither has come to its end
    rounds = together(workers, clock)
    seen = [next(rounds)]
    clock.stop.set()
    seen += islice(rounds, ROUNDS)
    assert len(seen) <= ROUNDS, "it does not end"
    times = [second for one in seen for second in np.asarray(one[1]).tolist()]
    assert times == sorted([*range(60), *range(60)])


@pytest.mark.parametrize("stopped", [False, True])
def test_a_file_that_came_to_its_end_holds_nobody_up(stopped: bool) -> None:
    """Its engine hands over what it still holds, perhaps nothing, after the end was told."""
    clock = Clock(None)
    if stopped:
        clock.stop.set()
    told = () if stopped else ((FOR_EVER, {}),)
    short = file_of((3, batch(1, 3)), (FOR_EVER, {}), (3, batch()))
    none = file_of((FOR_EVER, {}), (-1, batch()))
    long = file_of((100, batch(50, 100)), (200, batch(150, 200)), *told)
    times, _ = answered([short, none, long], clock)
    assert times == [1, 3, 50, 100, 150, 200]
