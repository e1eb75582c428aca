"""wait_for, delay and shed: tuples that are held back or let go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.ops.conftest import assert_nothing_lives
from tests.reference import hold
from xstream.ops.hold import Delay, WaitFor
from xstream.ops.shed import POLICIES, Shed
from xstream.testing import list_source, run_operator, streams

numbers = st.lists(st.integers(-10, 25), max_size=20)
FIELDS = {"time": int, "x": int}


def rows_of(times: list[int]) -> list[tuple[int, int]]:
    return [(time, i) for i, time in enumerate(times)]


# -- wait_for ------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(numbers, numbers, st.sampled_from(["reached", "equal"]), st.booleans())
def test_tuples_wait_for_the_other_stream_whichever_is_ahead(
    everywhere: Callable[..., Any], held: list[int], other: list[int], until: str, flush: bool
) -> None:
    rows = rows_of(held)
    operator = WaitFor("time", "value", until, flush)
    found = everywhere(operator, list_source(rows, FIELDS), list_source(other, int))
    assert found == hold.wait_for(rows, other, until, flush)


@settings(max_examples=8)
@given(streams(), numbers)
def test_held_segments_are_let_go(
    everywhere: Callable[..., Any], segments: list[xs.SigSeg], other: list[int]
) -> None:
    schema = (int, xs.Segment(np.float32))
    rows = [(i, segment) for i, segment in enumerate(segments)]
    source = list_source(rows, schema)
    found = everywhere(WaitFor("f0", "value"), source, list_source(other, int))
    assert [row[0] for row in found] == [i for i, _ in rows if i <= max(other, default=-99)]
    assert len(everywhere(Delay(2), source)) == len(rows)


def test_a_lookup_waits_for_the_update_of_its_minute() -> None:
    """What the thesis wants it for: the table is complete before it is read."""
    for scheduler in xs.SCHEDULER_NAMES:
        q = xs.Query()
        tolls = q.source(list_source([(1, 5), (2, 7), (3, 9)], {"minute": int, "toll": int}))
        asked = q.source(list_source([(1, 1), (2, 2), (9, 9)], {"minute": int, "car": int}))
        ready = asked.wait_for(tolls, on="minute")
        out = ready.collect()
        run = q.run(scheduler)
        assert run[out] == [(1, 1), (2, 2)]
        assert run.stats_of(ready).dropped == 1


# -- delay ---------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(numbers, st.integers(0, 12), st.booleans())
def test_tuples_leave_when_enough_has_come(times: list[int], amount: int, by_time: bool) -> None:
    """Watched from behind: how many tuples had come when each left."""
    q = xs.Query()
    came: list[int] = []
    left: list[int] = []
    source = q.source(list_source(rows_of(times), FIELDS))
    seen = source.map(lambda time, x: (came.append(x), (time, x))[1], out=FIELDS)
    operator = Delay(amount, "time" if by_time else None)
    seen.then(operator).sink(lambda time, x: left.append(len(came)))
    q.run()
    expected = hold.delayed(times, amount, by_time)
    assert left == [len(times) if number is None else number for number in expected]


@settings(max_examples=15)
@given(numbers, st.integers(0, 12))
def test_a_delay_keeps_every_tuple_in_order(
    everywhere: Callable[..., Any], times: list[int], amount: int
) -> None:
    rows = rows_of(times)
    source = list_source(rows, FIELDS)
    assert everywhere(Delay(amount), source) == rows
    stamped = everywhere(Delay(amount, "time", stamp=True), source)
    assert stamped == [(time + amount, x) for time, x in rows]


# -- shed ----------------------------------------------------------------------------------------


def overloaded(operator: Shed, rows: list[Any], scheduler: str = "df") -> tuple[list[Any], int]:
    """All rows wait in the queue when the first is served."""
    q = xs.Query()
    kept = q.source(list_source(rows, {"time": int, "k": int})).then(operator)
    out = kept.collect()
    manager = xs.memory_manager("refcount-lazy")
    run = q.run(scheduler, manager, tuple_burst=None)
    return run[out], run.stats_of(kept).dropped


ROWS = [(i * 3, i % 10) for i in range(1000)]


@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_the_oldest_or_the_newest_go(scheduler: str) -> None:
    assert overloaded(Shed(100), ROWS, scheduler) == (ROWS[900:], 900)
    assert overloaded(Shed(100, "newest"), ROWS, scheduler) == (ROWS[:100], 900)
    assert overloaded(Shed(1000), ROWS, scheduler) == (ROWS, 0)
    assert overloaded(Shed(30, time="time"), ROWS, scheduler) == (ROWS[989:], 989)
    assert overloaded(Shed(30, "newest", time="time"), ROWS, scheduler) == (ROWS[:11], 989)


def test_a_random_part_or_some_keys_are_kept() -> None:
    kept, dropped = overloaded(Shed(100, "random", seed=3), ROWS)
    assert len(kept) + dropped == 1000
    assert 150 < len(kept) < 550  # of a queue that gets shorter while it is served
    assert kept == overloaded(Shed(100, "random", seed=3), ROWS)[0]
    assert kept != overloaded(Shed(100, "random", seed=4), ROWS)[0]
    kept, dropped = overloaded(Shed(400, "key", by="k", seed=1), ROWS)
    assert len(kept) + dropped == 1000
    first = {k: next(time for time, key in kept if key == k) for _, k in kept}
    for k, time in first.items():  # a key that is kept stays: the load only falls
        assert [row for row in kept if row[1] == k] == [
            row for row in ROWS if row[1] == k and row[0] >= time
        ]
    assert len({k for time, k in kept if time < 300}) < 10


def test_nothing_is_shed_where_nothing_waits() -> None:
    for memory in xs.MANAGER_NAMES:
        assert run_operator(Shed(1), list(range(500)), memory=memory) == list(range(500))


def test_shed_segments_are_freed() -> None:
    for memory in xs.MANAGER_NAMES:
        for drop in ("oldest", "newest", "random"):
            manager = xs.memory_manager(memory)
            rows = [xs.SigSeg(np.zeros(8), i * 8) for i in range(50)]
            found = run_operator(
                Shed(5, drop), rows, memory=manager, scheduler="fifo", tuple_burst=None
            )
            assert 5 <= len(found) < 50
            del found
            assert_nothing_lives(manager)


# -- wrong use -----------------------------------------------------------------------------------


def test_a_time_that_does_not_fit_is_an_error(fails_everywhere: Callable[..., str]) -> None:
    source = list_source([(2**63 - 2, 1), (2**63 - 1, 1)], FIELDS)
    operator = Delay(2, "time", stamp=True)
    assert "a time that is later by 2 does not fit into 64 bits" in fails_everywhere(
        operator, source
    )


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: WaitFor("x", until="later"), "wait_for: until is 'reached' or 'equal'"),
        (lambda: run_operator(WaitFor("f0"), [(0.5, 1)], [1]), "wait_for, port 'in': 'f0' is no"),
        (lambda: run_operator(WaitFor("f0"), [(1, 1)], [1]), "wait_for, port 'other': 'f0' is no"),
        (lambda: Delay(-1), "delay: amount is at least 0, not -1"),
        (lambda: Delay(1, stamp=True), "delay: stamp needs the field"),
        (lambda: run_operator(Delay(1, "t"), [1]), "delay, port 'in': 't' is no field of whole"),
        (lambda: Shed(0), "shed: limit is at least 1, not 0"),
        (lambda: Shed(1, "some"), f"shed: drop is one of {', '.join(POLICIES)}, not 'some'"),
        (lambda: Shed(1, "key"), "shed: drop='key' goes with by="),
        (lambda: run_operator(Shed(1, time="t"), [1]), "shed, port 'in': 't' is no field of whole"),
    ],
)
def test_wrong_use_is_refused(declare: Callable[[], Any], message: str) -> None:
    with pytest.raises((xs.GraphError, xs.SchemaError), match=message):
        declare()
