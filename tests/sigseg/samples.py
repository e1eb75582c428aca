"""Samples to put into segments, and the dtypes that segments hold."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from xstream._native import ffi, lib

import xstream as xs
from xstream.sigseg.segment import _wrap

INTEGERS = [np.dtype(t) for t in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")]
FLOATS = [np.dtype(t) for t in ("f2", "f4", "f8")]
COMPLEX = [np.dtype(t) for t in ("c8", "c16")]
RECORD = np.dtype([("vid", np.int32), ("speed", np.float32), ("lane", np.uint8)])
PADDED = np.dtype([("flag", np.bool_), ("at", np.float64), ("xy", np.int16, (2,))], align=True)
RECORDS = [RECORD, PADDED]
ALL_DTYPES = [*INTEGERS, *FLOATS, *COMPLEX, *RECORDS]


def numbered(width: int, dtype: npt.DTypeLike = np.int32, first: int = 0) -> npt.NDArray[Any]:
    """`width` samples that tell where they come from, as far as the dtype can."""
    dtype = np.dtype(dtype)
    numbers = np.arange(first, first + width)
    if dtype.names is None:
        return (numbers % 120).astype(dtype)
    samples = np.zeros(width, dtype)
    for name in dtype.names:
        field = samples[name]
        field[...] = (numbers % 120).reshape(-1, *[1] * (field.ndim - 1))
    return samples


def pieced(
    samples: npt.NDArray[Any],
    cuts: list[int],
    start: int = 0,
    timebase: xs.Timebase | None = None,
    memory: str | xs.MemoryManager | None = None,
) -> xs.SigSeg:
    """A segment of `samples` appended from the parts between `cuts`."""
    seg = xs.SigSeg.null(timebase, samples.dtype, memory)
    bounds = [0, *sorted(cuts), len(samples)]
    for low, high in itertools.pairwise(bounds):
        seg = seg.append(xs.SigSeg(samples[low:high], start + low, timebase, seg.manager))
    return seg


def grown_in_core(manager: xs.MemoryManager, pieces: int, width: int = 1) -> xs.SigSeg:
    """An accumulator of `pieces` segments of `width` int16 samples each, grown without Python."""
    first = xs.SigSeg(np.zeros(width, np.int16), memory=manager)
    accumulator = ffi.new("xs_seg **", lib.xs_seg_ref(first._handle))
    assert lib.xs_seg_time_appends(accumulator, pieces - 1, width, 0) >= 0
    return _wrap(accumulator[0], 0, pieces * width, first)


def shown(seg: xs.SigSeg) -> npt.NDArray[Any]:
    """What a segment shows, read without making it contiguous."""
    chunks = list(seg.chunks())
    return np.concatenate(chunks) if chunks else np.empty(0, seg.dtype)


def cuts_of(width: int, most: int = 30) -> st.SearchStrategy[list[int]]:
    """Where to cut `width` samples into pieces, some of them empty."""
    return st.lists(st.integers(0, width), max_size=most)
