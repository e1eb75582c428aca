"""Results of kernels become segments without a copy, and memory counters stay true."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import xstream as xs

SAMPLES = np.arange(4096, dtype=np.float32)
COUNTED = [name for name in xs.MANAGER_NAMES if name != "copy-always"]


@xs.kernel
def several(window):
    made = window - window.mean()
    return made, made, window[10:], made[5:], window[:3], window[::-1], len(window)


@xs.kernel(out={"cut": xs.Out("f4", start="given"), "n": int})
def cuts(window, out):
    out.emit_at(out.start + 1, window[1:], 1)
    scratch = window * np.float32(2)
    out.emit_at(out.start, scratch, 2)
    scratch[:] = 0  # after it was emitted: nobody may see this
    out.emit_at(out.start, window[:2], 3)


@xs.kernel(state=np.zeros(600, np.float32))
def counted_up(window, state):
    state += np.float32(1)
    return state


def run_in(memory: str, build: Any) -> tuple[Any, Any]:
    q = xs.Query()
    out = build(q.source(xs.io.array(SAMPLES, window=1024))).collect()
    run = q.run(memory=memory)
    return run, run[out]


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_returned_arrays_views_and_inputs_have_their_values(memory: str) -> None:
    run, found = run_in(memory, lambda stream: stream.map(several))
    for row, window in zip(found, SAMPLES.reshape(4, -1), strict=True):
        made = window - window.mean()
        expected = (made, made, window[10:], made[5:], window[:3], window[::-1])
        for segment, samples in zip(row, expected, strict=False):
            assert np.asarray(segment).tolist() == samples.tolist()
            assert segment.start == row[0].start
            assert segment.pieces == 1
        assert row[6] == 1024
    manager = run.manager
    del run, found, row, segment
    gc.collect(0)
    assert (manager.stats().live_blocks, manager.stats().live_bytes) == (0, 0)


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_emitted_arrays_are_values(memory: str) -> None:
    _, found = run_in(memory, lambda stream: stream.iterate(cuts))
    for number, window in enumerate(SAMPLES.reshape(4, -1)):
        expected = (window[1:], window * 2, window[:2])
        for (segment, n), samples in zip(found[3 * number :], expected, strict=False):
            assert np.asarray(segment).tolist() == samples.tolist()
            assert segment.start == 1024 * number + (n == 1)


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_a_state_that_is_returned_is_copied(memory: str) -> None:
    _, found = run_in(memory, lambda stream: stream.map(counted_up))
    assert [np.asarray(segment)[[0, -1]].tolist() for segment in found] == [
        [n, n] for n in (1.0, 2.0, 3.0, 4.0)
    ]


@xs.kernel
def centred(window):
    return window - window.mean()


@xs.kernel
def second_half(window):
    return window[512:]


@pytest.mark.parametrize("memory", COUNTED)
def test_counters_tell_what_is_alive(memory: str) -> None:
    run, _ = run_in(memory, lambda stream: stream.map(centred))
    source, windows = SAMPLES.nbytes, 4
    stats = run.manager.stats()
    assert stats.allocations == 1 + windows
    assert (stats.live_blocks, stats.live_bytes) == (1 + windows, 2 * source)
    assert stats.bytes_copied == 0
    run, _ = run_in(memory, lambda stream: stream.map(second_half))
    stats = run.manager.stats()
    assert (stats.allocations, stats.live_blocks, stats.live_bytes) == (1, 1, source)


def test_adopted_memory_counts_towards_the_limit() -> None:
    q = xs.Query()
    q.source(xs.io.array(SAMPLES, window=1024)).map(centred).collect()
    limit = SAMPLES.nbytes + 2 * 4096
    with pytest.raises(xs.XStreamError, match=r"map\(centred\).*does not fit"):
        q.run(memory=xs.memory_manager("refcount-lazy", limit_bytes=limit))


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_what_was_adopted_can_be_appended_cut_and_overwritten(memory: str) -> None:
    @xs.kernel
    def negated(window):
        return -window

    run, found = run_in(
        memory, lambda stream: stream.map(centred).rewindow(1500).map(negated).rewindow(700, -100)
    )
    whole = np.concatenate([window - window.mean() for window in SAMPLES.reshape(4, -1)])
    negative = -whole[:3000]
    for segment in found:
        assert np.asarray(segment).tolist() == negative[segment.start : segment.stop].tolist()
    assert len(found) == 4
    del run
