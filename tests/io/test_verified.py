"""Checksums of Parquet's pages: those of zlib, on every page, and in any piece that is read."""

from __future__ import annotations

import base64
import lzma
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
from xstream.io.page_checksums import column_chunks
from xstream.io.verified import VerifiedFile

FLIPS = 400
#: A small damaged file that the fuzzer found, compressed.
HISTOGRAM = (
    "{Wp48S^xk9=GL@E0stWa8~^|S5YJf5;08?s09^nm5Jrehl4^5*t19Sx-R}c80lonej)t7ilYnpEFH7lxf#-JPo}m"
    "+`fk4@>!q0=480Ys)`c)&ZLXx!I2zdyyHK>RmF%j45#B8}hE#W#P;|6h8dTafrzkibpcC0ejy3HQYGr46XG-bCjY"
    "oJ|VgwEE<G&1G^=rUD3bgwr0!=?w8@wfZR2FZmo4uT?NhX3YManJ3jhGSN$Gwd*-r@(VtPs40h_JaYYtz+SSX}hU"
    "}#fI76!7q=d=CBCS>mRf(sx&=ii!3TuOvzF{kt;q-V+1y20Wsg#J1<vHbgsEUuBI7XLn<J3B$a*8y6mO_U!sWt-3"
    "H@kH-LvnQq35+KRu_XB9-&yv3k%~8<#UWop#H^VGZ83Xr@vORm-hDEch7E6O?Z>I(*I-?-TmAL+rHF*Jrr*B@{X9"
    "zdt10Fr!_apm0ldQKGBC>4pIh$<%=+T%vCe5}hDL)(&~;d3g(*RTwK}Agt;<+jBB4<=oZt^_)q3zLJY@^`i3!a&9"
    "U&892m;^+NkiDMe5Mwq$?pVWVH2QZX>TCFYhaa+x21AT8IB_m>zXH>mD%zHcHdWMS*KMnBZ1Xbsbkh(uTv!U>iDU"
    "-C5Vk@=&3_c!?Ni-;C7d*B*;5EPm%*`-pq#y>+|Y~T>vSoNhz_J<}gtc1ZOEckE$g5V%o@z&Bo00Eo?&I|wmbj10"
    "?vBYQl0ssI200dcD"
)


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
    file.seek(begin)
    with pytest.raises(xs.InputError, match="the page at byte"):
        file.read(10)
    file.seek(0)
    assert file.read(4).to_pybytes() == b"PAR1"
    file.close()


def test_the_places_of_column_chunks_are_those_of_pyarrow(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(table(), path, row_group_size=1_500)
    metadata, expected = pq.ParquetFile(path).metadata, []
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            pages = [column.data_page_offset, column.dictionary_page_offset or 2**62]
            place = min(pages), column.total_compressed_size, pages[0]
            expected.append((number, column.num_values, *place))
    with path.open("rb") as file:
        assert column_chunks(file.fileno()) == expected
    for text in (b"", b"PAR1", b"x" * 4 + b"\xff" * 4 + b"PAR1", path.read_bytes()[:-9] + b"PAR1"):
        path.write_bytes(text)
        with path.open("rb") as file:
            assert column_chunks(file.fileno()) == []


def test_a_footer_that_ends_the_process_in_pyarrow_is_an_error(tmp_path: Path) -> None:
    # A histogram that does not fit its column: an exception that its objects do not catch.
    path = tmp_path / "x.parquet"
    path.write_bytes(lzma.decompress(base64.b85decode(HISTOGRAM)))
    with pytest.raises(xs.InputError, match="cannot be read as Parquet"):
        samples_of(xs.io.parquet(path))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_footer_or_not(data: bytes) -> None:
    count = lib.xs_column_chunks(ffi.from_buffer(data), len(data), ffi.NULL, 0)
    found = ffi.new("xs_column_chunk[]", max(count, 1))
    assert lib.xs_column_chunks(ffi.from_buffer(data), len(data), found, max(count, 0)) == count


@given(st.binary(max_size=200))
def test_any_bytes_are_looked_at_within_their_bounds(data: bytes) -> None:
    assert lib.xs_wrong_page(ffi.from_buffer(data), len(data)) < max(len(data), 1)
