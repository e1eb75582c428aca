"""Checksums of Parquet's pages: those of zlib, on every page, and in any piece that is read."""

from __future__ import annotations

import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xstream._native import ffi, lib

import xstream as xs
from tests.io.files import samples_of
from xstream.io.verified import VerifiedFile

FLIPS = 400


def crc32(data: bytes, before: int = 0) -> int:
    return int(lib.xs_crc32(before, ffi.from_buffer(data), len(data)))


@given(st.binary(max_size=700), st.integers(0, 700), st.integers(0, 2**32 - 1))
def test_the_checksum_is_that_of_zlib(data: bytes, at: int, before: int) -> None:
    assert crc32(data, before) == zlib.crc32(data, before)
    assert crc32(data[at:], crc32(data[:at])) == zlib.crc32(data)


def test_long_checksums_are_those_of_zlib_at_every_alignment() -> None:
    data = np.random.default_rng(1).bytes(100_000)
    for begin in range(17):
        assert crc32(data[begin : -begin or None]) == zlib.crc32(data[begin : -begin or None])


def table() -> pa.Table:
    rng = np.random.default_rng(2)
    noise, few = rng.normal(size=4_000), rng.integers(0, 9, 4_000)
    holes = pa.array(noise, mask=few == 3)
    return pa.table({"noise": noise, "few": few, "holes": holes})


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_flipped_bits_are_noticed_where_pyarrow_notices_them(
    tmp_path: Path, version: str, compression: str
) -> None:
    path, rng = tmp_path / "x.parquet", random.Random(3)
    options: dict[str, Any] = {"data_page_version": version, "compression": compression}
    pq.write_table(
        table(), path, row_group_size=1_500, data_page_size=2_000, write_page_checksum=True,
        **options,
    )  # fmt: skip
    whole, expected = path.read_bytes(), samples_of(xs.io.parquet(path))
    noticed = 0
    for _ in range(FLIPS):
        damaged = bytearray(whole)
        damaged[rng.randrange(4, len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            pq.read_table(path, partitioning=None, page_checksum_verification=True)
        except (OSError, pa.ArrowException, UnicodeDecodeError):
            noticed += 1
            with pytest.raises(xs.InputError):
                samples_of(xs.io.parquet(path))
            continue
        try:
            found = samples_of(xs.io.parquet(path))
        except xs.InputError:
            continue  # a header that pyarrow does not look at
        assert [len(column) for column in found] == [len(column) for column in expected]
    assert noticed > FLIPS // 2


def test_a_chunk_that_is_read_in_pieces_is_verified(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(table(), path, write_page_checksum=True)
    metadata = pq.ParquetFile(path).metadata
    column = metadata.row_group(0).column(0)
    begin = column.dictionary_page_offset or column.data_page_offset
    data = bytearray(path.read_bytes())
    data[begin + column.total_compressed_size - 1] ^= 1
    path.write_bytes(data)
    file = VerifiedFile(path)
    file.expect(metadata)
    file.seek(begin)
    with pytest.raises(xs.InputError, match="the page of column 'noise' at byte"):
        file.read(10)
    file.seek(0)
    assert file.read(4).to_pybytes() == b"PAR1"
    file.close()


@given(st.binary(max_size=200))
def test_any_bytes_are_looked_at_within_their_bounds(data: bytes) -> None:
    assert lib.xs_wrong_page(ffi.from_buffer(data), len(data)) < max(len(data), 1)
