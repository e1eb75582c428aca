"""What the four schedulers do differently: who queues, how much, and in which order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.engine import kernels

QUEUEING = [name for name in xs.SCHEDULER_NAMES if name != "df"]
SAMPLES = np.arange(64 * 16, dtype=np.float32)


def passchain(repeat: int = 1, operators: int = 5) -> tuple[xs.Query, Any]:
    q = xs.Query()
    stream = q.source(xs.io.array(SAMPLES, window=16, repeat=repeat))
    for _ in range(operators):
        stream = stream.passed()
    return q, stream.count()


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_df_queues_nothing_on_a_plain_chain(memory: str) -> None:
    q = xs.Query()
    stream = q.source(xs.io.array(SAMPLES, window=16, repeat=20)).passed()
    stream = stream.filter(kernels.keep_all).map(kernels.doubled).map(lambda segment: segment)
    stream.collect()
    run = q.run("df", memory)
    assert run.queue_bytes_peak == 0
    assert all(stats.queue_peak == 0 for stats in run.stats.values())


def test_df_calls_by_reference_and_the_others_pass_counts() -> None:
    q, _ = passchain()
    assert q.run("df").memory.shares == 0
    for scheduler in QUEUEING:
        assert q.run(scheduler).memory.shares > 0


def test_copy_always_copies_once_a_hop() -> None:
    q, _ = passchain(operators=3)
    for scheduler in xs.SCHEDULER_NAMES:
        memory = q.run(scheduler, "copy-always").memory
        assert memory.copied_for["pass"] == 4 * SAMPLES.nbytes, scheduler  # 3 passes, a count


@pytest.mark.parametrize("scheduler", QUEUEING)
def test_the_others_queue_in_front_of_every_operator(scheduler: str) -> None:
    q, _ = passchain()
    for name, stats in q.run(scheduler, tuple_burst=64).stats.items():
        if name != "array":
            assert 0 < stats.queue_peak <= 64
            assert stats.queue_peak_bytes == 8 * stats.queue_peak


def test_in_a_cycle_only_the_edge_that_closes_it_queues() -> None:
    q = xs.Query()
    start = q.source(xs.io.iterable([(2.0**k, 0) for k in range(20)], out=(float, int)))
    back = q.feedback((float, int), name="back")
    merged = start.merge(back)
    again = merged.filter(kernels.above, 1.0).map(kernels.halve)
    q.connect(back, again)
    merged.filter(kernels.below, 1.0).count()
    stats = q.run("df").stats
    assert stats["merge"].queue_peak > 0  # what comes back waits where the stream entered
    assert [name for name, one in stats.items() if one.queue_peak] == ["merge"]


@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_rate_control_bounds_queues_and_memory(scheduler: str) -> None:
    """With a burst, peaks do not depend on how long the run is; without, they grow with it."""

    def peaks(repeat: int, burst: int | None) -> tuple[int, int]:
        q = xs.Query()
        src = q.source(xs.io.array(SAMPLES, window=16, repeat=repeat))
        src.map(kernels.doubled).map(kernels.doubled).count()
        run = q.run(scheduler, tuple_burst=burst)
        return run.queue_bytes_peak, run.memory.peak_bytes

    short, long = peaks(4, 64), peaks(200, 64)
    assert short == long or scheduler == "fifo-slice"  # whose peaks depend on the clock
    assert long[0] <= 4 * 64 * 8  # four queues of a burst
    assert long[1] <= 2 * SAMPLES.nbytes + 3 * 64 * 16 * 4
    queued_short, memory_short = peaks(4, None)
    queued_long, memory_long = peaks(200, None)
    assert queued_long >= 20 * queued_short > 0
    if scheduler == "rtc":
        assert memory_long > 5 * memory_short


def test_rings_grow_and_shrink_around_their_seam() -> None:
    """A queue that is never empty wraps around; a burst of bursts makes it grow while wrapped."""
    q = xs.Query()
    src = q.source(xs.io.samples(np.arange(3000)))
    blown_up = src.iterate(lambda i, x: [(i, k) for k in range(i % 37)], out=(int, int))
    out = blown_up.passed().merge(src).collect()
    expected = sorted(
        [(i, k) for i in range(3000) for k in range(i % 37)] + [(i, i) for i in range(3000)]
    )
    for scheduler in xs.SCHEDULER_NAMES:
        for burst in (None, 7, 64):
            run = q.run(scheduler, tuple_burst=burst)
            assert sorted(run[out]) == expected, (scheduler, burst)


def test_large_rings_are_given_back_when_they_run_empty() -> None:
    q = xs.Query()
    stream = q.source(xs.io.samples(np.arange(50_000)))
    for _ in range(11):
        stream = stream.passed()
    out = stream.count()
    run = q.run("rtc", tuple_burst=None)
    assert run[out] == 50_000
    # One queue fills while the one before it empties, and that one is gone then: never all twelve.
    assert run.queue_bytes_peak < 6 * 65_536 * 16


def test_statistics_count_tuples_samples_and_emissions() -> None:
    q = xs.Query()
    src = q.source(xs.io.array(SAMPLES, window=16, repeat=100), name="src")
    loud = src.passed(name="p").filter(kernels.keep_all, name="f")
    doubled = loud.map(kernels.doubled, name="m")
    half = doubled.filter(lambda segment: segment.start % 32 == 0, name="py")
    out = half.count(name="c")
    for scheduler in xs.SCHEDULER_NAMES:
        run = q.run(scheduler)
        stats = run.stats
        for name in ("src", "p", "f", "m", "py"):
            assert stats[name].tuples == 6400, (scheduler, name)
            assert stats[name].samples == 100 * len(SAMPLES)
            assert stats[name].emitted == (3200 if name == "py" else 6400)
        assert stats["c"].tuples == run[out] == 3200
        assert run[out].samples == stats["c"].samples == 50 * len(SAMPLES)
        assert stats["c"].emitted == 0
        assert run.source_samples == 100 * len(SAMPLES)
        assert run.samples_per_second == run.source_samples / run.wall_seconds


SLEEP_NS = 50_000


@pytest.mark.parametrize("tuples", [1, 20, 600])
@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_busy_times_are_an_operators_own(scheduler: str, tuples: int) -> None:
    """However few its tuples are, an operator has a time, and what it calls is not in it: the one
    that sleeps takes at least as long as it sleeps, and all of them no longer than the run."""
    q = xs.Query()
    src = q.source(xs.io.array(SAMPLES[:tuples], window=1), name="src")
    first = src.passed(name="p").map(lambda segment: segment, name="before")
    slept = first.filter(lambda _: time.sleep(SLEEP_NS / 1e9) is None, name="sleeps")
    slept.filter(lambda segment: segment.start == tuples - 1, name="after").count(name="once")
    stats = q.run(scheduler).stats
    assert all(one.busy_ns > 0 for one in stats.values()), stats
    assert stats["sleeps"].busy_ns >= tuples * SLEEP_NS
    run = q.run(scheduler, profile=True)
    assert run.stats["sleeps"].busy_ns >= tuples * SLEEP_NS
    assert sum(one.busy_ns for one in run.stats.values()) <= 1e9 * run.wall_seconds


def test_a_source_that_waits_is_not_busy() -> None:
    q = xs.Query()
    tuples, wait_s = 20, 0.005

    def late() -> Iterator[int]:
        for number in range(tuples):
            time.sleep(wait_s)
            yield number

    q.source(xs.io.iterable(late, out=int), name="late").count()
    run = q.run()
    assert 0 < run.stats["late"].busy_ns < 1e9 * tuples * wait_s / 2
    assert run.wall_seconds >= tuples * wait_s


def test_samples_of_scalars_count_as_one_each() -> None:
    q = xs.Query()
    out = q.source(xs.io.samples(np.arange(10))).count()
    run = q.run()
    assert (run[out], run[out].samples) == (10, 10)


def test_sources_that_wait_and_sources_that_have_ended() -> None:
    """One source ends at once, one has everything, one waits: all of it arrives."""
    q = xs.Query()
    ended = q.source(xs.io.array(np.empty(0, np.float32)))
    ready = q.source(xs.io.array(np.ones(1000, np.float32), window=10))
    waits = q.source(xs.io.array(np.ones(400, np.float32), window=100, offered_hz=4000.0))
    outs = [stream.count() for stream in (ended, ready, waits)]
    for scheduler in xs.SCHEDULER_NAMES:
        for burst in (None, 1, 64):
            run = q.run(scheduler, tuple_burst=burst)
            assert [run[out] for out in outs] == [0, 100, 4]
            assert run.wall_seconds >= 0.1


def test_what_is_kept_comes_out_at_the_end_in_order_of_the_graph() -> None:
    """Kernels that are called at the end emit into operators that have not ended yet."""
    q = xs.Query()
    first = q.source(xs.io.samples(np.arange(5.0))).iterate(kernels.sum_at_end)
    second = first.merge(first.map(kernels.negative)).iterate(kernels.sum_at_end)
    outs = [first.collect(), second.collect()]
    for scheduler in xs.SCHEDULER_NAMES:
        for burst in (None, 1, 64):
            run = q.run(scheduler, tuple_burst=burst)
            assert [run[out] for out in outs] == [[(5, 10.0)], [(2, 0.0)]]


def test_slices_are_a_number_of_microseconds_of_fifo_slice_alone() -> None:
    q, out = passchain()
    assert q.run("fifo-slice", slice_us=1e9)[out] == q.run("fifo-slice", slice_us=0.001)[out] == 64
    for scheduler, slice_us in (("df", 5.0), ("fifo-slice", 0.0), ("fifo-slice", -1.0)):
        with pytest.raises(xs.QueryError):
            q.run(scheduler, slice_us=slice_us)
    with pytest.raises(xs.QueryError, match="choose one of fifo, fifo-slice, rtc, df"):
        q.run("lifo")


@pytest.mark.parametrize("burst", [0, -1, 1.5, "64"])
def test_a_burst_is_a_positive_number(burst: Any) -> None:
    q, _ = passchain()
    with pytest.raises(xs.GraphError, match="tuple_burst"):
        q.run(tuple_burst=burst)
