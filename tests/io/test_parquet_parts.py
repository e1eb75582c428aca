"""Parquet files in parts: cut back and continued, they are one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xstream.errors import InputError
from xstream.io.parquet_footer import moved_footer
from xstream.io.parquet_parts import ParquetParts

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string()), ("flags", pa.list_(pa.bool_()))])


def batch(number: int) -> Any:
    rows = range(number, number + 7)
    columns = [list(rows), [str(row) if row % 3 else None for row in rows], [[True, False]] * 7]
    return pa.record_batch([pa.array(column) for column in columns], schema=SCHEMA)


def written(path: Path, parts: list[list[int]], lost: int, **options: Any) -> None:
    """Write parts, each by a new writer after a crash that left `lost` batches too many."""
    path.write_bytes(b"")
    length = 0
    for part in parts:
        with path.open("r+b") as file:
            file.truncate(length)
            file.seek(length)
            writer = ParquetParts(file, SCHEMA, **options)
            for number in part:
                writer.write(batch(number))
            length = writer.commit()
            for number in range(lost):
                writer.write(batch(number))
            writer.abort()
    with path.open("r+b") as file:
        file.truncate(length)
        file.seek(length)
        ParquetParts(file, SCHEMA, **options).finish()


@settings(deadline=None, max_examples=40)
@given(
    parts=st.lists(st.lists(st.integers(0, 1000), max_size=3), max_size=4),
    lost=st.integers(0, 2),
    dictionary=st.booleans(),
    compression=st.sampled_from(["none", "lz4", "snappy"]),
    indexed=st.booleans(),
)
def test_parts_are_one_file(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[int]], lost: int, dictionary: bool,
    compression: str, indexed: bool,
) -> None:  # fmt: skip
    path = tmp_path_factory.mktemp("parts") / "out.parquet"
    options = {"use_dictionary": dictionary, "compression": compression}
    written(path, parts, lost, **options, write_page_index=indexed)
    wanted = pa.Table.from_batches([batch(n) for part in parts for n in part], schema=SCHEMA)
    file = pq.ParquetFile(path, page_checksum_verification=True)
    assert file.read().equals(wanted)
    assert file.metadata.num_rows == len(wanted)
    for group in range(file.num_row_groups):  # each can be read alone
        assert file.read_row_group(group).num_rows == 7
    if len(wanted):
        assert pq.read_table(path, filters=[("number", ">=", 0)]).num_rows == len(wanted)


def test_a_part_that_is_gone_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    path.write_bytes(bytes(500))
    with path.open("r+b") as file:
        file.seek(500)
        with pytest.raises(InputError, match="there is no footer before byte 500"):
            ParquetParts(file, SCHEMA).finish()


@given(st.binary(max_size=60))
def test_bytes_that_are_no_footer_are_copied_or_refused(given: bytes) -> None:
    try:
        moved_footer(given, 0)
    except ValueError:
        return
