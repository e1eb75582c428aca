"""Where the pages of a Parquet file are, and whether they have checksums."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from xstream._native import ffi, lib

__all__ = ["ColumnChunk", "column_chunks", "has_page_checksums", "unverified_sentence"]

#: A file ends with the length of its footer and these bytes.
_MAGIC, _TAIL_BYTES = b"PAR1", 8

#: A page's header is a Thrift struct in the compact protocol. It begins with three int32 fields
#: (the kind and two sizes) with consecutive numbers, and the checksum, if any, is the fourth.
_NEXT_INT32 = 0x15
_FIELDS_BEFORE = 3
_HEADER_BYTES = 1 + _FIELDS_BEFORE * 6  # an int32 takes a byte for its field and at most five


class ColumnChunk(NamedTuple):
    """The place of the pages of a column in a row group."""

    column: int
    values: int
    begin: int
    bytes: int
    #: Where the first page with data begins, behind a dictionary if there is one.
    data_page: int


def column_chunks(file: int) -> list[ColumnChunk]:
    """The column chunks of an open Parquet file, group by group; none if it is not valid.

    pyarrow's own objects for them end the process if a footer is damaged in some ways.
    """
    size = os.fstat(file).st_size
    tail = os.pread(file, _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
    length = int.from_bytes(tail[:4], "little")
    if len(tail) < _TAIL_BYTES or tail[4:] != _MAGIC or length > size - _TAIL_BYTES:
        return []
    footer = os.pread(file, length, size - _TAIL_BYTES - length)
    count = lib.xs_column_chunks(ffi.from_buffer(footer), len(footer), ffi.NULL, 0)
    if count <= 0:
        return []
    found = ffi.new("xs_column_chunk[]", count)
    lib.xs_column_chunks(ffi.from_buffer(footer), len(footer), found, count)
    return [
        ColumnChunk(each.column, each.values, each.begin, each.bytes, each.data_page)
        for each in found
    ]


def has_page_checksums(path: Path, columns: Collection[str]) -> bool:
    """Whether the first pages of the given columns have one, in every row group."""
    with pq.ParquetFile(path) as file, path.open("rb") as raw:
        names = [file.schema.column(at).path for at in range(len(file.schema))]
        wanted = {at for at, name in enumerate(names) if name.lower() in columns}
        return all(
            _has_checksum(os.pread(raw.fileno(), _HEADER_BYTES, offset))
            for chunk in column_chunks(raw.fileno())
            if chunk.column in wanted and chunk.values
            for offset in {chunk.begin, chunk.data_page}
            if offset >= 0
        )


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
