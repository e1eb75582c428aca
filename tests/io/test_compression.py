"""Compressed input takes memory for what it contains, not for what it announces."""

from __future__ import annotations

import gc
import gzip
import lzma
import os
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

import xstream as xs
from tests.fresh import in_fresh_process
from tests.io.files import samples_of
from xstream.bench._resident import ResidentPeak
from xstream.io.compression import open_input

MEBIBYTE = 1 << 20
SUFFIXES = ("gz", "zst", "xz")


#: Sanitizers keep freed memory for a while.
without_sanitizer = pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="memory is kept by the sanitizer"
)


def memory_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def compressed(data: bytes, suffix: str) -> bytes:
    if suffix == "xz":
        return lzma.compress(data, preset=0)
    packed: bytes = pa.compress(data, {"gz": "gzip", "zst": "zstd"}[suffix], asbytes=True)
    return packed


def settled_bytes() -> int:
    """The memory of the process without garbage (pyarrow's streams are parts of cycles) and without
    what pyarrow's allocator keeps."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    return memory_bytes()


def read_all(path: str) -> None:
    with open_input(Path(path)) as stream:
        while stream.read(8 * MEBIBYTE):
            pass


def refuse(path: str, times: int) -> None:
    for _ in range(times):
        with pytest.raises(xs.InputError, match=path):
            read_all(path)


def kept_of_refusals(path: str) -> int:
    """The bytes that sixty refusals of a file leave behind."""
    refuse(path, 20)  # what the allocators keep has its size then
    before = settled_bytes()
    refuse(path, 60)
    return settled_bytes() - before


def growth_while_read(path: str) -> int:
    """The most memory that it takes to read a file, at any moment."""
    gc.collect()
    peak = ResidentPeak()
    read_all(path)
    return peak.grown()


@without_sanitizer
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_damaged_file_leaves_no_memory_behind(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    damaged = bytearray(compressed(os.urandom(2 * MEBIBYTE), suffix)[: 3 * MEBIBYTE // 2])
    damaged[MEBIBYTE : MEBIBYTE + 4096] = bytes(4096)
    path.write_bytes(damaged)
    assert in_fresh_process(kept_of_refusals, str(path)) < 16 * MEBIBYTE


@without_sanitizer
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_small_file_of_many_bytes_is_read_piece_by_piece(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"zeros.{suffix}"
    path.write_bytes(compressed(bytes(96 * MEBIBYTE), suffix))
    assert path.stat().st_size < MEBIBYTE
    assert in_fresh_process(growth_while_read, str(path)) < 32 * MEBIBYTE


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"1" * (16 * MEBIBYTE), 1))
    q = xs.Query()
    q.source(xs.io.csv(path)).count()
    with pytest.raises(xs.InputError, match=r"byte 2: a line is longer than 8,388,608 bytes"):
        q.run()


def test_a_message_that_announces_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.arrows.gz"
    batch = pa.record_batch([pa.array(np.arange(1000.0))], names=["x"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = sink.getvalue().to_pybytes()
    announced = (8000).to_bytes(8, "little")
    assert announced in data
    path.write_bytes(gzip.compress(data.replace(announced, (1 << 42).to_bytes(8, "little"))))
    with pytest.raises(xs.InputError, match=str(path)):
        samples_of(xs.io.arrow(path))


def test_a_decompressor_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.raw.xz"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 1 << 30}]
    compressor = lzma.LZMACompressor(filters=filters)
    path.write_bytes(compressor.compress(b"abcd") + compressor.flush())
    with pytest.raises(xs.InputError, match=r"x\.raw\.xz cannot be read as xz: Memory usage limit"):
        samples_of(xs.io.raw(path))


def test_an_xz_file_may_have_several_streams_and_padding(tmp_path: Path) -> None:
    path = tmp_path / "x.raw.xz"
    ramp = np.arange(100_000, dtype=np.float32)
    halves = [lzma.compress(half.tobytes(), preset=0) for half in np.split(ramp, 2)]
    for padding in (b"", bytes(8), bytes(100_000)):
        path.write_bytes(halves[0] + padding + halves[1] + padding)
        np.testing.assert_array_equal(samples_of(xs.io.raw(path))[0], ramp)
    path.write_bytes(halves[0] + b"something else")
    with pytest.raises(xs.InputError, match=r"x\.raw\.xz cannot be read as xz"):
        samples_of(xs.io.raw(path))
