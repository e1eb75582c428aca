"""numpy, DLPack and Arrow read segments without copying; what they cannot express is named."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import xstream as xs
from tests.sigseg.samples import (
    ALL_DTYPES,
    COMPLEX,
    FLOATS,
    INTEGERS,
    RECORD,
    RECORDS,
    numbered,
    pieced,
    shown,
)


def ids(dtypes: list[np.dtype[Any]]) -> list[str]:
    return [str(dtype)[:24] for dtype in dtypes]


# -- numpy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=ids(ALL_DTYPES))
def test_every_dtype_comes_back_as_it_went_in(
    dtype: np.dtype[Any], manager: xs.MemoryManager
) -> None:
    samples = numbered(100, dtype, 5)
    seg = pieced(samples, [10, 11, 60], memory=manager)
    assert seg.dtype == dtype
    assert np.asarray(seg).dtype == dtype
    assert np.array_equal(np.asarray(seg), samples)
    assert np.array_equal(shown(seg), samples)
    assert seg[61] == samples[61]
    assert xs.SigSeg(samples) == seg


@pytest.mark.parametrize("swapped", [">f4", ">i8", [("a", ">i2"), ("b", "<f8")]])
def test_foreign_byte_order_becomes_native(swapped: Any) -> None:
    samples = np.zeros(4, swapped)
    samples[1] = 1 if samples.dtype.names is None else (1, 1)
    seg = xs.SigSeg(samples)
    assert seg.dtype.isnative
    assert np.array_equal(np.asarray(seg), samples.astype(seg.dtype))


def test_asarray_of_one_range_shares_memory_always(manager: xs.MemoryManager) -> None:
    seg = xs.SigSeg(numbered(64), memory=manager)
    assert np.shares_memory(np.asarray(seg), np.asarray(seg))
    assert np.asarray(seg) is np.asarray(seg)
    assert np.asarray(seg, copy=False) is np.asarray(seg)
    if manager.name != "copy-always":
        assert np.shares_memory(np.asarray(seg.share()), np.asarray(seg))
        assert np.shares_memory(np.asarray(seg.subseg(8, 8)), np.asarray(seg))
    assert manager.stats().copied_for["materialise"] == 0


def test_a_list_is_made_contiguous_once_and_kept(lazy: xs.MemoryManager) -> None:
    seg = pieced(numbered(64), [16, 32], memory=lazy)
    assert seg.pieces == 3
    with pytest.raises(ValueError, match=r"cannot be one array without a copy: read its chunks"):
        np.asarray(seg, copy=False)
    assert lazy.stats().materialisations == 0
    first = np.asarray(seg)
    assert np.asarray(seg.share(), copy=False) is not None
    assert np.shares_memory(first, np.asarray(seg.share()))
    assert np.shares_memory(first, np.asarray(seg.subseg(10, 30)))
    stats = lazy.stats()
    assert (stats.materialisations, stats.copied_for["materialise"]) == (1, 64 * 4)


def test_copy_and_dtype_arguments_mean_what_numpy_means(manager: xs.MemoryManager) -> None:
    seg = xs.SigSeg(numbered(8, np.int16), memory=manager)
    with pytest.raises(ValueError, match=r"cannot be read as float64 without a copy"):
        np.asarray(seg, dtype=np.float64, copy=False)
    copy = np.array(seg)
    assert copy.flags.writeable
    assert not np.shares_memory(copy, np.asarray(seg))
    copy[:] = 0
    assert np.array_equal(np.asarray(seg), numbered(8, np.int16))
    assert np.asarray(seg, dtype=np.float64).dtype == np.float64
    assert np.asarray(seg, dtype=np.int16) is np.asarray(seg)
    assert np.mean(seg) == np.mean(numbered(8, np.int16))


def test_arrays_are_read_only_and_cannot_be_made_writable(manager: xs.MemoryManager) -> None:
    seg = pieced(numbered(64), [16, 32], memory=manager)
    empty = xs.SigSeg.null(memory=manager)
    for array in (np.asarray(seg), *seg.chunks(), np.asarray(seg)[3:], np.asarray(empty)):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1
        if array.size:
            with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
                array.flags.writeable = True
        assert memoryview(array).readonly


def test_an_array_keeps_its_memory_alive(manager: xs.MemoryManager) -> None:
    seg = pieced(numbered(64), [16, 32], memory=manager)
    whole, some = np.asarray(seg), next(seg.chunks())
    tail = whole[-3:]
    del seg, whole
    gc.collect()
    assert manager.stats().live_segments == 0
    assert manager.stats().live_blocks >= 1
    assert tail.tolist() == [61, 62, 63]
    assert some[0] == 0


def test_a_segment_does_not_keep_itself_alive(manager: xs.MemoryManager) -> None:
    """The kept array holds the block, not the segment: no cycle that only gc would break."""
    gc.disable()
    try:
        seg = pieced(numbered(64), [16], memory=manager)
        np.asarray(seg)
        del seg
        assert manager.stats().live_blocks == 0
    finally:
        gc.enable()


# -- DLPack --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX], ids=str)
def test_dlpack_shares_memory(dtype: np.dtype[Any]) -> None:
    seg = xs.SigSeg(numbered(32, dtype))
    array = np.from_dlpack(seg)
    assert array.dtype == dtype
    assert np.shares_memory(array, np.asarray(seg))
    assert not array.flags.writeable
    assert seg.__dlpack_device__() == np.asarray(seg).__dlpack_device__()


@pytest.mark.parametrize("dtype", RECORDS, ids=ids(RECORDS))
def test_dlpack_names_the_records_that_it_cannot_express(dtype: np.dtype[Any]) -> None:
    with pytest.raises(TypeError) as caught:
        np.from_dlpack(xs.SigSeg(numbered(4, dtype)))
    assert str(caught.value) == f"DLPack cannot express dtype {dtype}"
    assert isinstance(caught.value, xs.DtypeError)


# -- Arrow ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
def test_arrow_reads_one_array_a_piece_without_copying(dtype: np.dtype[Any]) -> None:
    samples = numbered(100, dtype)
    seg = pieced(samples, [30, 64], memory="refcount-lazy")
    chunked = pa.chunked_array(seg)
    assert chunked.type == pa.from_numpy_dtype(dtype)
    assert [len(chunk) for chunk in chunked.chunks] == [30, 34, 36]
    for theirs, ours in zip(chunked.chunks, seg.chunks(), strict=True):
        assert theirs.buffers()[1].address == ours.ctypes.data
        theirs.validate(full=True)
    assert np.array_equal(chunked.to_numpy(), samples)
    del seg
    gc.collect()
    assert np.array_equal(chunked.to_numpy(), samples)


def test_arrow_memory_is_given_back(manager: xs.MemoryManager) -> None:
    chunked = pa.chunked_array(pieced(numbered(100), [30, 64], memory=manager))
    assert manager.stats().live_blocks >= 1
    assert chunked[99].as_py() == 99
    assert manager.stats().materialisations == 0


@pytest.mark.parametrize("dtype", [np.dtype(t) for t in ("i2", "u4", "i8", "f4", "f8")], ids=str)
def test_polars_reads_a_segment(dtype: np.dtype[Any]) -> None:
    samples = numbered(100, dtype)
    series = pl.Series(pieced(samples, [30, 64]))
    assert np.array_equal(series.to_numpy(), samples)


def test_an_empty_segment_is_an_empty_column() -> None:
    assert pa.chunked_array(xs.SigSeg.null(dtype=np.int16)).to_pylist() == []
    assert np.from_dlpack(xs.SigSeg.null()).size == 0
    assert np.asarray(xs.SigSeg.null(dtype=RECORD)).dtype == RECORD


@pytest.mark.parametrize("dtype", [*COMPLEX, *RECORDS, np.dtype(bool)], ids=str)
def test_arrow_names_the_dtypes_that_it_cannot_express(dtype: np.dtype[Any]) -> None:
    with pytest.raises(TypeError) as caught:
        pa.chunked_array(xs.SigSeg(numbered(4, dtype)))
    assert str(caught.value) == f"Arrow cannot express dtype {dtype} without a copy"
    assert isinstance(caught.value, xs.DtypeError)
