"""`build` and `edit`: what is committed cannot be changed by whoever wrote it."""

from __future__ import annotations

import _thread
import operator
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.sigseg.samples import RECORD, numbered, pieced


@pytest.mark.parametrize(
    "keep",
    [
        lambda array: array,
        lambda array: array[2:],
        lambda array: array.view(np.uint8),
        lambda array: array[::-1].reshape(2, -1).T,
        lambda array: memoryview(array),
        lambda array: array.base,
        lambda array: iter(array.flat),
        lambda array: [{"deep": (array[5:],)}],
    ],
    ids=["array", "view", "bytes", "reshaped", "memoryview", "base", "iterator", "in-a-container"],
)
@pytest.mark.parametrize("begin", ["build", "edit"])
def test_a_kept_view_cannot_change_the_committed_segment(
    begin: str, keep: Callable[[Any], Any], manager: xs.MemoryManager
) -> None:
    if begin == "build":
        writer = xs.SigSeg.build(10, np.int32, memory=manager)
    else:
        writer = xs.SigSeg(np.zeros(10, np.int32), memory=manager).edit()
    writer.array[:] = numbered(10)
    address = writer.array.ctypes.data
    kept = keep(writer.array)
    copied_before = manager.stats().copied_for["edit"]
    seg = writer.commit()
    assert manager.stats().copied_for["edit"] - copied_before == 40
    assert np.asarray(seg).ctypes.data != address
    if isinstance(kept, np.ndarray):
        kept[...] = 99
    elif begin == "build" and not isinstance(kept, list):
        np.frombuffer(getattr(kept, "base", kept), np.uint8)[...] = 99
    assert np.array_equal(np.asarray(seg), numbered(10))
    del kept


def test_a_view_that_has_gone_costs_nothing(manager: xs.MemoryManager) -> None:
    writer = xs.SigSeg.build(10, np.int32, memory=manager)
    view = writer.array[:5]
    view[:] = 1
    writer.array[5:] = 2
    del view
    seg = writer.commit()
    assert manager.stats().bytes_copied == 0
    assert np.asarray(seg).tolist() == [1] * 5 + [2] * 5


def test_edit_leaves_the_segment_and_its_arrays_alone(manager: xs.MemoryManager) -> None:
    seg = pieced(numbered(30), [10, 20], memory=manager)
    array, chunks = np.asarray(seg), list(seg.chunks())
    with seg.edit() as e:
        e.array[:] = -1
    assert (np.asarray(e.segment) == -1).all()
    assert (e.segment.start, e.segment.width) == (seg.start, seg.width)
    for shown in (array, np.concatenate(chunks), np.asarray(seg)):
        assert np.array_equal(shown, numbered(30))


def test_an_exception_discards_what_was_written(manager: xs.MemoryManager) -> None:
    with pytest.raises(RuntimeError, match="half way"), xs.SigSeg.build(5, memory=manager) as b:
        raise RuntimeError("half way")
    with pytest.raises(xs.SigSegError, match=r"^this segment is not committed$"):
        _ = b.segment
    with pytest.raises(xs.SigSegError, match=r"^this segment is already committed or discarded$"):
        b.commit()


def test_after_the_commit_nothing_more_is_written() -> None:
    writer = xs.SigSeg.build(5, np.int8)
    with pytest.raises(xs.SigSegError, match=r"^this segment is not committed$"):
        _ = writer.segment
    writer.array[:] = 1
    seg = writer.commit()
    assert writer.segment is seg
    with pytest.raises(xs.SigSegError, match="already committed or discarded"):
        _ = writer.array
    with pytest.raises(xs.SigSegError, match=r"^this segment is already committed or discarded$"):
        writer.commit()


def test_commit_inside_the_block_is_enough() -> None:
    with xs.SigSeg.build(3, np.int8) as writer:
        writer.array[:] = 4
        seg = writer.commit()
    assert writer.segment is seg
    assert np.asarray(seg).tolist() == [4, 4, 4]


@pytest.mark.parametrize("dtype", [np.dtype("c16"), RECORD], ids=["complex", "record"])
def test_empty_and_compound_buffers(dtype: np.dtype[Any], manager: xs.MemoryManager) -> None:
    assert xs.SigSeg.build(0, dtype, memory=manager).commit().width == 0
    with xs.SigSeg.build(6, dtype, start=4, memory=manager) as buffer:
        buffer.array[:] = numbered(6, dtype)
    assert buffer.segment == xs.SigSeg(numbered(6, dtype), start=4)


@pytest.mark.parametrize("memory", ["of a writer", "of a segment"])
def test_a_ctrl_c_while_an_array_is_freed_is_not_lost(memory: str) -> None:
    # A shell that starts tests in the background leaves SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _interrupt_while_freeing(memory)
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt_while_freeing(memory: str) -> None:
    writer = xs.SigSeg.build(100, np.float64)
    held = [np.asarray(writer.commit())] if memory == "of a segment" else [writer.array]
    del writer
    # Between these two calls no Python code runs, which would raise the interrupt earlier.
    calls = map(operator.call, (_thread.interrupt_main, held.clear))
    with pytest.raises(KeyboardInterrupt):
        list(calls)
    assert not held
