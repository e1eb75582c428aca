"""Several threads: everything is as with one, and nothing stays behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.engine import kernels
from tests.engine.conftest import plain, results

SAMPLES = np.random.default_rng(5).normal(size=3000).astype(np.float32)

pytestmark = pytest.mark.usefixtures("cut_at_once")


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """Threads and files are as many as before."""
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    yield
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) <= files


def source(q: xs.Query, window: int = 16, **options: Any) -> xs.Stream:
    return q.source(xs.io.array(SAMPLES, rate_hz=100.0, window=window, **options))


def chained(q: xs.Query, stream: xs.Stream, operators: int = 6) -> xs.Stream:
    for _ in range(operators):
        stream = stream.map(kernels.copied)
    return stream


# -- random graphs ---------------------------------------------------------------------------


@xs.kernel(state=np.zeros(1), out=xs.Out("float32"))
def with_offset(window, state, out):
    """Adds how many windows there were before: order matters."""
    made = window + np.float32(state[0])
    state[0] += 1
    out.emit(made)


@xs.kernel(state=np.zeros(2, np.float32), out=xs.Out("float32"), at_end=True)
def one_behind(window, state, out):
    """Emits the sum of the window before; that of the last one at the end of the stream."""
    made = np.empty(1, np.float32)
    made[0] = state[0]
    if out.ended:
        out.emit(made)
        return
    state[0] = window.sum()
    out.emit(made)


@xs.kernel
def numbered(window):
    return int(1000 * abs(window[:1].sum())), window


@xs.kernel(state=np.zeros(1), out=xs.Out("float32"))
def counted(key, window, state, out):
    state[0] += 1
    out.emit(window * np.float32(state[0]))


def one_more(q: xs.Query, streams: list[xs.Stream], kind: str, pick: int, other: int) -> None:
    """Put an operator behind one or two of the streams."""
    stream, second = streams[pick % len(streams)], streams[other % len(streams)]
    if kind == "pass":
        new = stream.passed()
    elif kind == "filter":
        new = stream.filter(kernels.louder, 0.8)
    elif kind == "map":
        new = stream.map(kernels.doubled)
    elif kind == "state":
        new = stream.iterate(with_offset)
    elif kind == "python":
        new = stream.map(lambda seg: seg)
    elif kind == "merge":
        new = stream.merge(second)
    elif kind == "end":
        new = stream.iterate(one_behind)
    elif kind == "zip":
        new = stream.zip(second).map(lambda a, b: a, out=stream.schema)
    else:
        parts = stream.map(numbered).partition(by="f0", replicas=2)
        new = parts.each(lambda part: part.iterate(counted)).merge()
    streams.append(new)


KINDS = ("pass", "filter", "map", "state", "python", "merge", "end", "zip", "partition")
STEP = st.tuples(st.sampled_from(KINDS), st.integers(0, 30), st.integers(0, 30))


def declared(q: xs.Query, steps: list[tuple[str, int, int]], sources: int) -> list[Any]:
    """A random graph, and a sink behind every stream that nothing else takes."""
    streams = [source(q, 32 + 16 * i) for i in range(sources)]
    for kind, pick, other in steps:
        one_more(q, streams, kind, pick, other)
    return [stream.collect() for stream in streams]


@pytest.mark.timeout(600)
@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(STEP, min_size=1, max_size=10),
    sources=st.integers(1, 3),
    memory=st.sampled_from(xs.MANAGER_NAMES),
    burst=st.sampled_from([None, 1, 5, 64]),
)
def test_random_graphs_give_the_results_of_one_thread(
    steps: list[tuple[str, int, int]], sources: int, memory: str, burst: int | None
) -> None:
    def declare(q: xs.Query) -> Any:
        return declared(q, steps, sources)

    alone = results(declare, "df", memory, burst)
    for threads, fuse in product((2, 3), (True, False)):
        assert results(declare, "df", memory, burst, threads=threads, fuse=fuse) == alone
    assert results(declare, "df", memory, burst, threads=2, profile=True) == alone


def test_a_graph_with_a_cycle_keeps_it_in_one_part() -> None:
    def declare(q: xs.Query) -> Any:
        first = q.source(xs.io.iterable([(float(2**k), 0) for k in range(40)], out=(float, int)))
        start = first.map(kernels.one_more).map(kernels.one_more)
        back = q.feedback((float, int))
        merged = start.merge(back)
        q.connect(back, merged.filter(kernels.above, 1.0).map(kernels.halve))
        left = merged.map(kernels.one_more).filter(kernels.below, 1.0)
        return [left.merge(start).collect(), merged.collect()]

    alone = results(declare, "df", "refcount-lazy", 8)
    for threads in (2, 3, 4):
        assert results(declare, "df", "refcount-lazy", 8, threads=threads) == alone


def test_streams_end_in_the_order_of_one_thread() -> None:
    """Both threads have operators that emit at the end, and a merge shows in which order."""

    def declare(q: xs.Query) -> Any:
        ends = []
        for window in (16, 48):
            early = source(q, window).rewindow(1024, flush=True).map(kernels.doubled)
            late = early.passed().map(lambda seg: seg).rewindow(70, flush=True)
            ends.append(late.map(lambda seg: seg))
        return [ends[0].merge(ends[1]).collect()]

    alone = results(declare, "df", "refcount-lazy", 8)
    for threads in (2, 3, 4):
        assert results(declare, "df", "refcount-lazy", 8, threads=threads) == alone


def test_each_part_gets_some_of_the_branches_of_every_source() -> None:
    def declare(q: xs.Query) -> Any:
        sinks = []
        for window in (16, 24):
            shared = source(q, window).iterate(with_offset)
            branches = [shared.iterate(with_offset).iterate(with_offset) for _ in range(8)]
            sinks.append(branches[0].merge(*branches[1:]).collect())
        return sinks

    q = xs.Query()
    declare(q)
    run = q.run(threads=2)
    assert run.threads == 2
    for part in run.parts:
        assert sum(name.startswith("iterate") for name in part) >= 8
    alone = results(declare, "df", "refcount-lazy", 8)
    for threads, memory in product((2, 3), xs.MANAGER_NAMES):
        assert results(declare, "df", memory, 8, threads=threads) == alone


# -- dividing --------------------------------------------------------------------------------


def test_the_operators_are_divided_in_order() -> None:
    q = xs.Query()
    out = chained(q, source(q)).count()
    run = q.run(threads=3)
    assert run.threads == len(run.parts) == 3
    assert [name for part in run.parts for name in part] == list(run.stats)
    assert run.parts[0][0] == "array"
    assert run[out] == 188
    assert len(run.part_seconds) == 3


def test_busy_times_decide_where_the_query_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xstream.run.MEASURE_NS", 20_000_000)

    def slow(window: xs.SigSeg) -> xs.SigSeg:
        end = time.perf_counter() + 0.0005
        while time.perf_counter() < end:
            pass
        return window

    q = xs.Query()
    stream = source(q).map(slow, name="slow 1").map(slow, name="slow 2")
    for _ in range(9):
        stream = stream.map(lambda seg: seg)
    stream.count()
    run = q.run(threads=2)
    assert "slow 1" in run.parts[0]
    assert "slow 2" in run.parts[1]


def test_one_operator_and_an_empty_stream() -> None:
    q = xs.Query()
    out = source(q).count()
    run = q.run(threads=3)
    assert (run[out], run.threads) == (188, 2)
    q = xs.Query()
    out = chained(q, q.source(xs.io.array(np.empty(0, np.float32)))).count()
    assert q.run(threads=3)[out] == 0


def test_statistics_count_what_stand_ins_did() -> None:
    q = xs.Query()
    chained(q, source(q, 4, repeat=40)).count()
    alone, both = q.run(), q.run(threads=2)
    for name, stats in alone.stats.items():
        told = both.stats[name]
        assert (told.tuples, told.samples, told.emitted) == (
            stats.tuples, stats.samples, stats.emitted,
        ), name  # fmt: skip
    assert alone.source_samples == both.source_samples


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_profiles_charge_each_operator_what_it_does(memory: str) -> None:
    def costs(threads: int) -> dict[str, tuple[int, int]]:
        q = xs.Query()
        chained(q, source(q, 32)).rewindow(100, -20).map(kernels.doubled).count()
        run = q.run(memory=memory, threads=threads, profile=True)
        return {name: (cost.bytes_copied, cost.allocations) for name, cost in run.costs.items()}

    assert costs(2) == costs(1) == costs(3)


def test_a_deep_graph_runs_on_several_threads() -> None:
    q = xs.Query()
    stream = source(q, 1000)
    for i in range(20_000):
        stream = stream.map(kernels.copied) if i % 2 else stream.passed()
    out = stream.collect()
    (first, *_) = q.run(threads=2)[out]
    assert plain(first) == (0, SAMPLES[:1000].tolist())


def test_never_more_threads_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xstream.sched.threads.usable_cores", lambda: 2)
    q = xs.Query()
    chained(q, source(q)).count()
    assert q.run(threads=500).threads == 2
    assert q.run(threads=None).threads == 2
    assert q.run(threads=500, scheduler="fifo").threads == 1
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(xs.QueryError, match="threads is a positive number"):
            q.run(threads=wrong)  # type: ignore[arg-type]


# -- errors ----------------------------------------------------------------------------------


def failure(declare: Any, threads: int) -> str:
    q = xs.Query()
    declare(q)
    with pytest.raises(xs.OperatorError) as caught:
        q.run(threads=threads)
    return str(caught.value)


@pytest.mark.parametrize("place", [0, 3, 6])
def test_an_error_is_named_as_with_one_thread(place: int) -> None:
    def declare(q: xs.Query) -> None:
        stream = chained(q, source(q, repeat=100), place).filter(kernels.fails_at_five, name="bad")
        chained(q, stream, 6 - place).count()

    alone = failure(declare, 1)
    assert "bad, port 'in', tuple (<SigSeg 16 samples [64, 80)" in alone
    assert failure(declare, 2) == failure(declare, 3) == alone


@xs.kernel
def fails_at(window, limit):
    if window[0] > limit:
        raise ValueError("too loud")
    return window


def test_an_error_of_a_stand_in_names_the_operator() -> None:
    def declare(q: xs.Query) -> None:
        ramp = np.arange(200_000, dtype=np.float32)
        stream = q.source(xs.io.array(ramp, window=4))
        for i in range(6):
            stream = stream.map(fails_at, 150_000.0 - i, name=f"limit {i}")
        stream.iterate(with_offset).count()

    alone = failure(declare, 1)
    assert "ValueError: too loud" in alone
    assert "limit 5" in alone
    for _ in range(5):
        assert failure(declare, 2) == alone


def test_the_first_failure_is_the_one_that_one_thread_would_find() -> None:
    """The part in front fails at once; the one behind fails on a tuple before that."""

    def slow(window: xs.SigSeg) -> xs.SigSeg:
        time.sleep(0.01)
        if window.start == 48:
            raise ValueError("behind")
        return window

    def declare(q: xs.Query) -> None:
        def quick(window: xs.SigSeg) -> xs.SigSeg:
            if window.start == 160:
                raise ValueError("in front")
            return window

        source(q).map(quick).map(slow).count()

    assert "behind" in failure(declare, 2)
    assert failure(declare, 2) == failure(declare, 1)


def test_a_source_that_fails() -> None:
    def items() -> Iterator[int]:
        yield from range(100)
        raise OSError("the disk is gone")

    def declare(q: xs.Query) -> None:
        q.source(xs.io.iterable(items, out=int)).map(lambda n: n, out=int).passed().count()

    assert failure(declare, 2) == failure(declare, 1)


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_memory_that_runs_out_behind_a_cut(memory: str) -> None:
    q = xs.Query()
    chained(q, source(q, 500, repeat=30)).collect()
    limited = xs.memory_manager(memory, limit_bytes=100_000)
    with pytest.raises(xs.SegmentMemoryError, match="100,000 bytes"):
        q.run(memory=limited, threads=2)
    del q
    assert limited.stats().live_blocks == 0


# -- stopping --------------------------------------------------------------------------------


def stopped(q: xs.Query, after_s: float = 0.2, **options: Any) -> xs.Run:
    stop = threading.Event()
    stop.set()
    q.run(stop=stop, **options)  # loads the kernels, which takes longer on a busy machine
    stop.clear()
    timer = threading.Timer(after_s, stop.set)
    timer.start()
    run = q.run(stop=stop, **options)
    timer.join()
    assert run.stopped
    return run


def test_a_stop_leaves_what_was_let_in() -> None:
    q = xs.Query()
    src = source(q, repeat=None)
    first, last = src.count(), chained(q, src).map(lambda seg: seg.start, out=int).collect()
    run = stopped(q, threads=2)
    assert run.threads == 2
    assert run[first] == len(run[last]) == run.stats["array"].tuples > 10
    assert run[last] == list(range(0, 16 * run[first], 16))


def test_a_stop_does_not_wait_for_a_slow_sink() -> None:
    q = xs.Query()
    seen: list[int] = []
    chained(q, source(q, repeat=None)).sink(lambda seg: (time.sleep(0.01), seen.append(seg.start)))
    begin = time.perf_counter()
    stopped(q, threads=2)
    assert time.perf_counter() - begin < 30
    assert seen == list(range(0, 16 * len(seen), 16))


def test_a_cycle_without_an_end_is_stopped() -> None:
    q = xs.Query()
    start = q.source(xs.io.iterable([(1.0, 0)], out=(float, int))).map(kernels.one_more)
    back = q.feedback((float, int))
    merged = start.merge(back)
    q.connect(back, merged.map(kernels.one_more))
    out = merged.count()
    assert stopped(q, threads=2)[out] > 1000


def test_a_source_that_waits_wakes_the_other_threads() -> None:
    q = xs.Query()
    out = chained(q, source(q, offered_hz=SAMPLES.size / 0.3)).count()
    run = q.run(threads=2)
    assert run[out] == 188
    assert 0.2 < run.wall_seconds < 30


def test_progress_is_told_by_the_calling_thread() -> None:
    q = xs.Query()
    chained(q, source(q, repeat=None)).count()
    told: list[tuple[threading.Thread, int]] = []
    stopped(q, threads=2, progress=lambda run: told.append(
        (threading.current_thread(), run.source_samples)))  # fmt: skip
    assert {thread for thread, _ in told} == {threading.current_thread()}
    samples = [count for _, count in told]
    assert samples == sorted(samples)
    assert samples[-1] > 0


def test_python_operators_find_the_manager_of_the_block_around_the_run() -> None:
    q = xs.Query()
    made: list[str] = []
    source(q).map(lambda seg: seg).sink(
        lambda seg: made.append(xs.SigSeg(np.zeros(3)).manager.name)
    )
    with xs.memory_manager("copy-always"):
        q.run(threads=2)
    assert set(made) == {"copy-always"}
