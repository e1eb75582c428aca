"""Bad input: one clear exception each, by its message, and nothing corrupted."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.sigseg.samples import RECORD, numbered, pieced, shown

TB = xs.Timebase(rate_hz=100.0)


def message_of(error: type[Exception], act: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        act()
    assert isinstance(caught.value, xs.XStreamError)
    return str(caught.value)


HOLDABLE = "samples are booleans, integers, float16/32/64, complex64/128, or records of those"


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (["a", "b"], f"a segment cannot hold dtype <U1: {HOLDABLE}"),
        ([object()], f"a segment cannot hold dtype object: {HOLDABLE}"),
        (np.zeros(2, np.longdouble), f"a segment cannot hold dtype float128: {HOLDABLE}"),
        (np.zeros(2, "M8[s]"), f"a segment cannot hold dtype datetime64[s]: {HOLDABLE}"),
        (
            np.zeros(2, [("a", "i4"), ("b", "O")]),
            "a segment cannot hold dtype object (inside [('a', '<i4'), ('b', 'O')]): " + HOLDABLE,
        ),
    ],
    ids=["text", "object", "longdouble", "datetime", "object-in-record"],
)
def test_dtypes_that_cannot_be_held_are_named(samples: Any, message: str) -> None:
    if np.asarray(samples).dtype == np.longdouble and np.dtype(np.longdouble).itemsize != 16:
        pytest.skip("longdouble has another name here")
    assert message_of(TypeError, lambda: xs.SigSeg(samples)) == message


def test_dtypes_that_are_none_are_named() -> None:
    assert message_of(TypeError, lambda: xs.SigSeg.null(dtype="quux")) == (
        "a segment cannot hold 'quux': not a numpy dtype"
    )
    assert message_of(TypeError, lambda: xs.SigSeg.build(3, np.dtype((np.int32, (2,))))) == (
        "a segment cannot hold dtype ('<i4', (2,)): a sample is one value or record"
    )
    assert message_of(TypeError, lambda: xs.SigSeg.null(dtype=np.dtype([]))) == (
        "a segment cannot hold dtype []: its items have no bytes"
    )


@pytest.mark.parametrize(("samples", "ndim"), [(np.zeros((2, 2)), 2), (3.0, 0)])
def test_samples_have_one_dimension(samples: Any, ndim: int) -> None:
    assert message_of(xs.SigSegError, lambda: xs.SigSeg(samples)) == (
        f"samples must have one dimension, not {ndim}"
    )


@pytest.mark.parametrize(
    ("start", "width", "message"),
    [
        (9, 1, "[9, 10) is not inside the segment [10, 20)"),
        (10, 11, "[10, 21) is not inside the segment [10, 20)"),
        (20, 1, "[20, 21) is not inside the segment [10, 20)"),
        (-5, 2, "[-5, -3) is not inside the segment [10, 20)"),
        (12, -1, "a subseg cannot have -1 samples"),
        (10**30, 1, f"[{10**30}, {10**30 + 1}) is not inside the segment [10, 20)"),
        (10, 10**30, f"[10, {10 + 10**30}) is not inside the segment [10, 20)"),
    ],
)
def test_a_subseg_outside_the_segment(
    start: int, width: int, message: str, manager: xs.MemoryManager
) -> None:
    seg = pieced(numbered(10), [4], 10, memory=manager)
    assert message_of(IndexError, lambda: seg.subseg(start, width)) == message
    assert np.array_equal(shown(seg), numbered(10))


def test_positions_outside_the_segment(manager: xs.MemoryManager) -> None:
    seg = pieced(numbered(10), [4], 10, memory=manager)
    for position in (10, -11, 10**30):
        assert message_of(IndexError, lambda at=position: seg[at]) == (
            f"position {position} is outside 10 samples"
        )
    assert message_of(IndexError, lambda: seg[::2]) == (
        "a segment cannot be sliced with a step of 2: slice np.asarray(seg)"
    )
    assert message_of(IndexError, lambda: xs.SigSeg.null()[0]) == "position 0 is outside 0 samples"
    with pytest.raises(TypeError, match="float"):
        seg[1.5]


def test_gaps_and_overlaps_name_both_sides(manager: xs.MemoryManager) -> None:
    a = xs.SigSeg(numbered(4), 0, memory=manager)
    gap, overlap = (xs.SigSeg(numbered(4), start, memory=manager) for start in (6, 3))
    assert message_of(ValueError, lambda: a.append(gap)) == (
        "cannot append [6, 10) to [0, 4): there is a gap of 2 samples"
    )
    assert message_of(ValueError, lambda: a.append(overlap)) == (
        "cannot append [3, 7) to [0, 4): there is an overlap of 1 samples"
    )
    assert message_of(ValueError, lambda: a.append(a)) == (
        "cannot append [0, 4) to [0, 4): there is an overlap of 4 samples"
    )


def test_mixed_signals_name_both_sides(manager: xs.MemoryManager) -> None:
    a = xs.SigSeg(numbered(4, np.int16), 0, TB, manager)
    other_dtype = xs.SigSeg(numbered(4, np.float32), 4, TB, manager)
    assert message_of(TypeError, lambda: a.append(other_dtype)) == (
        "cannot append samples of float32 to samples of int16"
    )
    faster = xs.SigSeg(numbered(4, np.int16), 4, xs.Timebase(200.0), manager)
    assert message_of(xs.TimebaseError, lambda: a.append(faster)) == (
        "cannot append a signal at 200 Hz to one at 100 Hz"
    )
    later = xs.SigSeg(numbered(4, np.int16), 4, xs.Timebase(100.0, 2.5), manager)
    assert message_of(xs.TimebaseError, lambda: a.append(later)) == (
        "cannot append a signal at 100 Hz from 2.5 s to one at 100 Hz"
    )
    unevenly = xs.SigSeg(numbered(4, np.int16), 4, None, manager)
    assert message_of(xs.TimebaseError, lambda: a.append(unevenly)) == (
        "cannot append a signal at index to one at 100 Hz"
    )
    assert message_of(TypeError, lambda: a.append(numbered(4, np.int16))) == (  # type: ignore[arg-type]
        "only a SigSeg can be appended to a SigSeg, not ndarray"
    )
    records = xs.SigSeg(numbered(4, RECORD), 4, TB, manager)
    assert str(RECORD) in message_of(TypeError, lambda: a.append(records))


def test_mixed_managers_name_both_sides() -> None:
    a = xs.SigSeg(numbered(4), 0, memory="copy-always")
    b = xs.SigSeg(numbered(4), 4, memory="refcount-lazy")
    assert message_of(xs.ManagerError, lambda: a.append(b)) == (
        "cannot append a segment of refcount-lazy to one of copy-always"
    )


def test_two_managers_of_one_kind_can_be_mixed(manager: xs.MemoryManager, memory: str) -> None:
    other = xs.memory_manager(memory)
    a = xs.SigSeg(numbered(4), 0, memory=manager)
    for first in (a, xs.SigSeg.null(dtype=np.int32, memory=manager)):
        joined = first.append(xs.SigSeg(numbered(4), first.stop, memory=other))
        assert np.array_equal(shown(joined), np.concatenate([shown(first), numbered(4)]))
    del joined, a, first
    assert other.stats().live_bytes == 0


def test_unknown_managers_and_limits() -> None:
    message = (
        "there is no memory manager 'lazy': choose one of "
        "copy-always, refcount-copy, refcount-realloc, refcount-lazy"
    )
    assert message_of(xs.ManagerError, lambda: xs.memory_manager("lazy")) == message
    assert message_of(xs.ManagerError, lambda: xs.SigSeg([1], memory="lazy")) == message
    assert message_of(xs.ManagerError, lambda: xs.memory_manager(limit_bytes=0)) == (
        "limit_bytes must be positive, not 0"
    )


def test_widths_and_indices_beyond_a_signal() -> None:
    assert message_of(IndexError, lambda: xs.SigSeg.build(-3)) == "a segment cannot have -3 samples"
    far = 2**62
    assert message_of(IndexError, lambda: xs.SigSeg([1], start=far)) == (
        f"[{far}, {far + 1}) is outside the indices of a signal"
    )
    assert xs.SigSeg([1], start=far - 1).append(xs.SigSeg.null(dtype=np.int64)).stop == far


def test_timebases_that_are_none() -> None:
    for rate in (0, -1.0, float("nan"), float("inf")):
        assert message_of(xs.TimebaseError, lambda r=rate: xs.Timebase(r)) == (
            f"rate_hz must be a positive number, not {rate!r}"
        )
    assert message_of(xs.TimebaseError, lambda: xs.Timebase(1.0, float("inf"))) == (
        "start_time must be finite, not inf"
    )
    assert message_of(xs.TimebaseError, lambda: xs.SigSeg([1], timebase=3)) == (  # type: ignore[arg-type]
        "timebase must be a Timebase, not 3"
    )
    assert message_of(xs.TimebaseError, lambda: TB.index_at(float("nan"))) == (
        "no sample is at time nan"
    )
    assert message_of(xs.TimebaseError, lambda: xs.SigSeg([1]).time_of(0)) == (
        "an index timebase has positions and no times"
    )


# -- memory --------------------------------------------------------------------------------------


def test_segments_larger_than_memory(manager: xs.MemoryManager) -> None:
    for width in (2**50, 2**61):
        assert message_of(
            MemoryError, lambda n=width: xs.SigSeg.build(n, np.float64, memory=manager)
        ) == (f"a segment of {width:,} samples of float64 does not fit into memory")
    assert manager.stats().live_bytes == manager.stats().peak_bytes == 0


def test_an_allocation_beyond_the_limit_leaves_everything_as_it_was(memory: str) -> None:
    limited = xs.memory_manager(memory, limit_bytes=1000)
    a = xs.SigSeg(numbered(100), memory=limited)
    b = xs.SigSeg(numbered(100), 100, memory=limited)
    refused: list[Callable[[], object]] = [
        lambda: xs.SigSeg(numbered(51), memory=limited),
        a.edit,
        lambda: np.asarray(a.append(b)),
        a.share if memory == "copy-always" else b.edit,
    ]
    for attempt in refused:
        assert "does not fit: " + memory in message_of(MemoryError, attempt)
        assert limited.stats().live_bytes == 800
        assert np.array_equal(shown(a), numbered(100))
        assert np.array_equal(shown(b), numbered(100))
    assert message_of(MemoryError, refused[0]) == (
        f"a segment of 51 samples of int32 does not fit: {memory} may hold 1,000 bytes "
        "and holds 800"
    )
    assert limited.stats().peak_bytes <= 1000


def test_memory_given_back_can_be_had_again(memory: str) -> None:
    limited = xs.memory_manager(memory, limit_bytes=1000)
    for _ in range(5):
        seg = xs.SigSeg(numbered(250), memory=limited)
        assert message_of(MemoryError, lambda: xs.SigSeg([1], memory=limited))
        del seg
        gc.collect()  # caught errors hold their frames
    assert limited.stats().live_bytes == 0


def test_realloc_takes_the_exact_size_where_room_to_grow_cannot_be_had() -> None:
    limited = xs.memory_manager("refcount-realloc", limit_bytes=1000)
    a = xs.SigSeg(numbered(150), memory=limited)
    b = xs.SigSeg(numbered(50), 150, memory=limited)
    assert a.append(b).width == 200
    assert limited.stats().reallocations == 1
    assert limited.stats().live_bytes == 1000


# -- what a segment is not -------------------------------------------------------------------------


def test_a_segment_is_not_hashable_nor_pickled_and_copies_are_itself() -> None:
    seg = xs.SigSeg([1, 2])
    with pytest.raises(TypeError, match="unhashable"):
        hash(seg)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(seg)
    assert copy.copy(seg) is seg
    assert copy.deepcopy(seg) is seg
    assert seg != [1, 2]


def test_repr_tells_width_range_rate_and_pieces() -> None:
    seg = pieced(numbered(10, np.int16), [4], 10, TB, "refcount-lazy")
    assert repr(seg) == "<SigSeg 10 samples [10, 20) int16 at 100 Hz, 2 pieces, refcount-lazy>"
    assert repr(xs.SigSeg([0.5], memory="refcount-copy")) == (
        "<SigSeg 1 samples [0, 1) float64 index, 1 piece, refcount-copy>"
    )
    assert repr(xs.memory_manager("copy-always")) == (
        "<MemoryManager copy-always, 0 bytes in 0 blocks>"
    )
