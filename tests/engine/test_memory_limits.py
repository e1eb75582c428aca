"""Memory that runs out in the middle of a run: the operator is named, and nothing leaks."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.engine import kernels

SAMPLES = np.zeros(4096, np.float32)


def runs_out(declare: Any, limit: int, scheduler: str, memory: str, burst: int | None = 64) -> str:
    manager = xs.memory_manager(memory, limit_bytes=limit)
    q = xs.Query()
    declare(q.source(xs.io.array(SAMPLES, window=256, repeat=100)))
    with pytest.raises(xs.SegmentMemoryError) as caught:
        q.run(scheduler, manager, burst)
    message = str(caught.value)
    del caught, q
    if manager.stats().live_segments:
        gc.collect()  # an exception may hold its frames in a cycle
    assert manager.stats().live_blocks == 0
    assert manager.stats().live_segments == 0
    return message


@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_results_that_find_no_memory_name_the_operator(scheduler: str, memory: str) -> None:
    def declare(src: Any) -> None:
        src.map(kernels.doubled, name="doubles").collect()

    message = runs_out(declare, 10 * SAMPLES.nbytes, scheduler, memory)
    if memory != "copy-always":  # where the copy for any hand-over may be the one too many
        assert message.startswith("doubles, port 'in', tuple (<SigSeg 256 samples ["), message


@xs.kernel
def backwards(window):
    return window[::-1]


#: The operator that is named: the one that makes the segment, or the first one of the region.
REGIONS: dict[str, Any] = {
    "last": lambda src: src.map(backwards).map(backwards, name="last"),
    "first": lambda src: src.map(backwards, name="first").filter(kernels.louder, -1.0),
}


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_a_region_without_memory_names_an_operator_and_its_tuple(name: str, memory: str) -> None:
    def declare(src: Any) -> None:
        REGIONS[name](src).collect()

    message = runs_out(declare, 10 * SAMPLES.nbytes, "df", memory)
    assert "tuple (<SigSeg 256 samples [" in message
    if memory != "copy-always":
        assert message.startswith(f"{name}, port 'in'")


@pytest.mark.parametrize("limit", [5, 6, 7, 9, 12, 20])
def test_wherever_it_runs_out_nothing_leaks(limit: int) -> None:
    """Every allocation of a run is the one that fails, in some of these."""

    def declare(src: Any) -> None:
        told = src.map(kernels.mean_and_ends)
        told.map(lambda mean, n, first, last: (first, last, n), out=_fields(told)).collect()
        src.iterate(kernels.remember_and_tell).collect()
        src.merge(src.map(kernels.doubled)).collect()

    for scheduler in xs.SCHEDULER_NAMES:
        for memory in xs.MANAGER_NAMES:
            for burst in (None, 3):
                message = runs_out(declare, limit * SAMPLES.nbytes // 4, scheduler, memory, burst)
                assert "port" in message or message.startswith("array:"), message


def _fields(told: Any) -> Any:
    _, _, first, last = told.schema.types
    return (first, last, int)


def test_a_recording_that_does_not_fit_is_refused_before_the_run() -> None:
    q = xs.Query()
    q.source(xs.io.array(SAMPLES)).count()
    manager = xs.memory_manager("refcount-lazy", limit_bytes=100)
    with pytest.raises(xs.SegmentMemoryError):
        q.run(memory=manager)
    gc.collect()
    assert manager.stats().live_blocks == 0


@xs.kernel(state=np.zeros(4))
def grows_without_measure(window, state):
    xs.grow(state, 2**59)
    return True


def test_state_that_cannot_grow() -> None:
    q = xs.Query()
    q.source(xs.io.array(SAMPLES)).filter(grows_without_measure).count()
    with pytest.raises(xs.OperatorError, match="MemoryError: a kernel's state cannot grow"):
        q.run()
