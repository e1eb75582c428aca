"""Runs on several threads that fail or are stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.engine import kernels
from tests.engine.test_threads import (  # noqa: F401  (the fixture applies to all tests here)
    SAMPLES,
    chained,
    nothing_stays,
    source,
    with_offset,
)

pytestmark = pytest.mark.usefixtures("cut_at_once")


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


@pytest.mark.parametrize("limit", [20_000, 30_000, 40_000, 60_000])
def test_memory_that_runs_out_while_windows_are_cut(limit: int) -> None:
    q = xs.Query()
    windows = source(q, 3000, repeat=30).rewindow(8, name="cut")
    chained(q, windows).collect()
    limited = xs.memory_manager("refcount-lazy", limit_bytes=limit)
    with pytest.raises(xs.SegmentMemoryError, match=f"{limit:,} bytes"):
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
