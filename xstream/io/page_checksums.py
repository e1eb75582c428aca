"""Checks whether the pages of a Parquet file have checksums."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

__all__ = ["has_page_checksums", "unverified_sentence"]

#: A page's header is a Thrift struct in the compact protocol. It begins with three int32 fields
#: (the kind and two sizes) with consecutive numbers, and the checksum, if any, is the fourth.
_NEXT_INT32 = 0x15
_FIELDS_BEFORE = 3
_HEADER_BYTES = 1 + _FIELDS_BEFORE * 6  # an int32 takes a byte for its field and at most five


def has_page_checksums(path: Path, columns: Collection[str]) -> bool:
    """Whether the first pages of the given columns have one, in every row group."""
    with pq.ParquetFile(path) as file, path.open("rb") as raw:
        return all(
            _has_checksum(os.pread(raw.fileno(), _HEADER_BYTES, offset))
            for offset in _pages(file.metadata, columns)
        )


def _pages(metadata: Any, columns: Collection[str]) -> Iterator[int]:
    """The offsets of the first page of each column chunk, and of its dictionary page."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            if column.path_in_schema.lower() in columns and column.num_values:
                if column.has_dictionary_page and column.dictionary_page_offset is not None:
                    yield column.dictionary_page_offset
                yield column.data_page_offset


def _has_checksum(header: bytes) -> bool:
    at = 0
    for _ in range(_FIELDS_BEFORE):
        if header[at : at + 1] != bytes([_NEXT_INT32]):
            return False
        at += 1
        while at < len(header) and header[at] & 0x80:  # a varint continues
            at += 1
        at += 1
    return header[at : at + 1] == bytes([_NEXT_INT32])


def unverified_sentence(paths: Sequence[Path]) -> str:
    """The warning about files without page checksums.

    >>> unverified_sentence([Path("a.parquet"), Path("b.parquet")])
    'a.parquet and 1 other have no page checksums, so damaged data in them goes unnoticed'
    """
    if len(paths) == 1:
        return f"{paths[0]} has no page checksums, so damaged data in it goes unnoticed"
    others = f"{len(paths) - 1:,} other{'s' if len(paths) > 2 else ''}"
    return f"{paths[0]} and {others} have no page checksums, so damaged data in them goes unnoticed"
