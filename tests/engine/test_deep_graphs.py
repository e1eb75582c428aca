"""Graphs of 100,000 operators, and with cycles, on large stacks and small ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.engine import kernels

DEEP = 100_000
SAMPLES = np.arange(70 * 4, dtype=np.float32)


def chain(operators: int, extend: Callable[[Any], Any]) -> tuple[xs.Query, Any]:
    q = xs.Query()
    stream = q.source(xs.io.array(SAMPLES, window=4))
    for _ in range(operators):
        stream = extend(stream)
    return q, stream.collect()


def check(q: xs.Query, out: Any, *mode: Any, **options: Any) -> xs.Run:
    run = q.run(*mode, **options)
    assert [segment.start for segment in run[out]] == list(range(0, len(SAMPLES), 4))
    return run


def in_small_stack(work: Callable[[], Any], kibibytes: int = 256) -> Any:
    """Do something in a thread with a small stack, and raise what it raises."""
    outcome: list[Any] = []

    def body() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))

    before = threading.stack_size(kibibytes * 1024)
    try:
        thread = threading.Thread(target=body)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


@pytest.fixture(scope="module")
def passes() -> tuple[xs.Query, Any]:
    # Were declaring quadratic in the chain, this would not end before the test's time is up.
    return chain(DEEP, lambda stream: stream.passed())


@pytest.fixture(scope="module")
def filters() -> tuple[xs.Query, Any]:
    return chain(DEEP, lambda stream: stream.filter(kernels.keep_all))


@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_100_000_passes(passes: tuple[xs.Query, Any], scheduler: str) -> None:
    run = check(*passes, scheduler)
    if scheduler == "df":
        assert run.queue_bytes_peak == 0
    else:
        assert run.stats["pass 5000"].queue_peak > 0


def test_100_000_passes_that_copy(passes: tuple[xs.Query, Any]) -> None:
    run = check(*passes, "df", "copy-always")
    assert run.memory.shares >= 70 * DEEP


def test_100_000_kernels(filters: tuple[xs.Query, Any]) -> None:
    run = check(*filters, "df")
    assert run.queue_bytes_peak == 0


def test_100_000_operators_on_a_small_stack(
    passes: tuple[xs.Query, Any], filters: tuple[xs.Query, Any]
) -> None:
    in_small_stack(lambda: check(*passes, "df"), 64)
    in_small_stack(lambda: check(*filters, "df"), 64)


@pytest.mark.parametrize("memory", ["copy-always", "refcount-lazy"])
def test_calls_that_nest_leave_the_stack_before_it_ends(memory: str) -> None:
    """Kernels that emit are called inside one another; the order survives where they cannot be."""
    q, out = chain(3000, lambda stream: stream.map(kernels.copied))
    small = in_small_stack(lambda: check(q, out, "df", memory))
    assert max(stats.queue_peak for stats in small.stats.values()) > 0
    check(q, out, "df", memory, 1)
    check(q, out, "df", memory, None)


def test_python_operators_do_not_nest() -> None:
    q, out = chain(2000, lambda stream: stream.map(lambda segment: segment))
    in_small_stack(lambda: check(q, out, "df"))
    check(q, out, "rtc")


@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_a_long_way_round_a_cycle(scheduler: str) -> None:
    q = xs.Query()
    start = q.source(xs.io.iterable([(float(2**k), 0) for k in range(12)], out=(float, int)))
    back = q.feedback((float, int))
    merged = start.merge(back)
    stream = merged.filter(kernels.above, 1.0).map(kernels.halve)
    for _ in range(5000):
        stream = stream.passed()
    q.connect(back, stream)
    out = merged.filter(kernels.below, 1.0).collect()
    for burst in (None, 1, 64):
        found = in_small_stack(lambda burst=burst: q.run(scheduler, tuple_burst=burst)[out])
        assert sorted(found) == [(1.0, k) for k in range(12)]


def test_a_million_times_round_a_short_cycle() -> None:
    q = xs.Query()
    start = q.source(xs.io.iterable([(0.0, 0)], out=(float, int)))
    back = q.feedback((float, int))
    merged = start.merge(back)
    q.connect(back, merged.map(kernels.one_more).filter(kernels.hops_left, 1_000_000))
    out = merged.count()
    for scheduler in xs.SCHEDULER_NAMES:
        run = q.run(scheduler)
        assert run[out] == 1_000_000
        assert run.queue_bytes_peak < 10_000


def test_no_tuple_overtakes_one_that_waits_because_the_stack_ran_short() -> None:
    """One tuple in 64 is timed, which takes more stack: at some length it alone has to wait."""
    for operators in range(10, 130, 2):
        q, out = chain(operators, lambda stream: stream.map(kernels.copied))
        in_small_stack(lambda: check(q, out, "df", fuse=False), 64)  # noqa: B023
