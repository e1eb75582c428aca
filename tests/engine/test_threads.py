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


def one_more(streams: list[xs.Stream], sources: int, kind: str, pick: int, other: int) -> None:
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
    elif kind == "rewindow":  # of a source, whose windows leave no gaps
        width, gap = 1 + 7 * (pick % 9), (-1, 0, 3, 40)[other % 4]
        new = streams[other % sources].rewindow(width, max(gap, 1 - width), flush=pick % 2 == 0)
    elif kind == "zip":
        new = stream.zip(second).map(lambda a, b: a, out=stream.schema)
    else:
        parts = stream.map(numbered).partition(by="f0", replicas=2)
        new = parts.each(lambda part: part.iterate(counted)).merge()
    streams.append(new)


KINDS = (
    "pass", "filter", "map", "state", "python", "merge", "end", "zip", "partition", "rewindow",
)  # fmt: skip
STEP = st.tuples(st.sampled_from(KINDS), st.integers(0, 30), st.integers(0, 30))


def declared(q: xs.Query, steps: list[tuple[str, int, int]], sources: int) -> list[Any]:
    """A random graph, and a sink behind every stream that nothing else takes."""
    streams = [source(q, 32 + 16 * i) for i in range(sources)]
    for kind, pick, other in steps:
        one_more(streams, sources, kind, pick, other)
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


def test_no_part_has_members_of_a_region_alone() -> None:
    q = xs.Query()
    chained(q, source(q)).collect()
    run = q.run(threads=3)
    assert run.threads == 3
    assert [len(part) for part in run.parts] == [1, 6, 1]


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


def counts(run: xs.Run) -> dict[str, tuple[int, int, int]]:
    return {name: (s.tuples, s.samples, s.emitted) for name, s in run.stats.items()}


def test_statistics_count_what_stand_ins_did() -> None:
    q = xs.Query()
    chained(q, source(q, 4, repeat=40)).count()
    alone, both = q.run(), q.run(threads=2)
    assert counts(alone) == counts(both)
    assert alone.source_samples == both.source_samples


# -- windows that the next thread cuts -------------------------------------------------------


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize(
    ("width", "gap"),
    [(32, 0), (32, -31), (7, 5), (1, 0), (500, -1), (4096, 0), (5000, -4000), (9, 2**60)],
)
def test_windows_are_those_of_one_thread(width: int, gap: int, flush: bool, memory: str) -> None:
    q = xs.Query()
    windows = source(q, 500, repeat=5).rewindow(width, gap, flush=flush, name="cut")
    out = chained(q, windows).collect()
    alone, both = q.run(memory=memory), q.run(memory=memory, threads=2)
    assert both.parts[0][-1] == "cut"
    assert [plain(seg) for seg in both[out]] == [plain(seg) for seg in alone[out]]
    assert counts(both) == counts(alone)


def test_windows_for_several_operators_and_threads() -> None:
    def declare(q: xs.Query) -> Any:
        windows = source(q, 700, repeat=7).rewindow(20, -3, flush=True)
        first = windows.map(kernels.doubled).rewindow(5)
        return [windows.merge(first).collect(), first.iterate(with_offset).collect()]

    alone = results(declare, "df", "refcount-lazy", 8)
    for threads, memory in product((2, 3, 4), xs.MANAGER_NAMES):
        assert results(declare, "df", memory, 8, threads=threads) == alone


@pytest.mark.parametrize("width", [1, 2, 60, 64, 75])
def test_small_windows_are_passed_by_value(width: int) -> None:
    """Up to 256 bytes are copied; the reader of a copy may change it in place."""
    q = xs.Query()
    stream = source(q, width, repeat=20).iterate(with_offset)
    kept = stream.collect()
    changed = stream.map(kernels.doubled).iterate(with_offset).iterate(with_offset).collect()
    alone, both = q.run(), q.run(threads=2)
    assert both.threads == 2
    for out in (kept, changed):
        assert [plain(seg) for seg in both[out]] == [plain(seg) for seg in alone[out]]
    extra = both.memory.bytes_copied - alone.memory.bytes_copied
    assert (extra > 0) == (width * SAMPLES.itemsize <= 256)


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
