"""Whatever the allocation that fails, an operator says so and leaves nothing behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.ops.conftest import assert_nothing_lives
from xstream.ops.decimate import Decimate
from xstream.ops.deinterleave import Deinterleave
from xstream.ops.dewindow import Dewindow
from xstream.ops.fft import Fft
from xstream.ops.gate import Gate
from xstream.ops.haar import Haar
from xstream.ops.hold import Delay
from xstream.ops.join import Join
from xstream.ops.rewindow import Rewindow
from xstream.ops.sync import Sync
from xstream.ops.zip import Zip
from xstream.testing import CutSignal, run_operator

SIGNAL = CutSignal(np.arange(256, dtype=np.float32), cuts=tuple(range(32, 256, 32)), joints=(40,))
SIGNAL_AT_8_HZ = replace(SIGNAL, timebase=xs.Timebase(rate_hz=8.0))
SIGNAL_AT_3_HZ = replace(SIGNAL, timebase=xs.Timebase(rate_hz=3.0))
RANGES = [(True, start, start + 50) for start in range(0, 200, 25)]
CASES: list[tuple[Any, ...]] = [
    (Rewindow(48), SIGNAL),
    (Rewindow(48, -20, True), SIGNAL),
    (Dewindow(), SIGNAL),
    (Zip(), SIGNAL, SIGNAL),
    (Gate(), RANGES, SIGNAL),
    (Sync(), RANGES, SIGNAL, SIGNAL),
    (Sync(flush=True), [*RANGES, (True, 240, 999)], SIGNAL),
    (Zip(), SIGNAL_AT_8_HZ, SIGNAL_AT_3_HZ),
    (Delay(3), SIGNAL),
    (Deinterleave(3), SIGNAL),
    (Fft(32), SIGNAL),
    (Haar(2, bands=True), SIGNAL),
    (Decimate(4), SIGNAL),
]


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].label)
def test_running_out_of_memory_leaves_nothing_behind(case: tuple[Any, ...], memory: str) -> None:
    operator, *inputs = case
    manager = xs.memory_manager(memory)
    run_operator(operator, *inputs, memory=manager)
    needed = manager.stats().peak_bytes
    failures = 0
    for limit in np.linspace(1, needed, 40).astype(int).tolist():
        for scheduler in ("df", "fifo"):
            tight = xs.memory_manager(memory, limit_bytes=limit)
            try:
                run_operator(operator, *inputs, memory=tight, scheduler=scheduler)
            except xs.SegmentMemoryError:
                failures += 1
            assert_nothing_lives(tight)
    assert failures


def test_a_failing_successor_leaves_nothing_behind() -> None:
    """The operators are in the middle of emitting when what comes after them fails."""
    for operator, *inputs in CASES:
        for scheduler, memory in zip(xs.SCHEDULER_NAMES, xs.MANAGER_NAMES, strict=True):
            manager = xs.memory_manager(memory)
            q = xs.Query()
            sources = tuple(q.source(_source(items)) for items in inputs)
            seen = []

            def fail_late(*values: Any, seen: list[int] = seen) -> None:
                seen.append(1)
                if len(seen) == 2:
                    raise RuntimeError("enough")

            for stream in q.add(operator, sources):
                stream.sink(fail_late)
            with pytest.raises(xs.OperatorError, match=r"sink.*RuntimeError: enough"):
                q.run(scheduler, manager)
            del q, sources, stream
            assert_nothing_lives(manager)


def _source(items: Any) -> Any:
    from xstream.testing import list_source

    if isinstance(items, CutSignal):
        return list_source(items.segments, xs.Segment(items.samples.dtype, items.timebase))
    return list_source(items)


def test_join_leaves_nothing_behind() -> None:
    rows = [(segment.start, segment) for segment in SIGNAL.segments()]
    for memory in xs.MANAGER_NAMES:
        for unique in (False, True):
            manager = xs.memory_manager(memory)
            assert len(run_operator(Join(unique=unique), rows, rows, memory=manager)) == len(rows)
            assert_nothing_lives(manager)
