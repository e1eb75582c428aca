"""Parquet files that can be cut back: written in parts, each of which ends with a footer.

A part is a Parquet file of its own behind the one before; its footer says where it begins. At the
end, a footer over the row groups of all parts makes them one file. Its readers skip the footers in
between, which take a few hundred bytes each. A file of one part is an ordinary file.
"""

from __future__ import annotations

import io
import os
from typing import Any, BinaryIO

from xstream.errors import InputError
from xstream.io.parquet_footer import moved_footer

__all__ = ["ParquetParts"]

_MAGIC = b"PAR1"
_TAIL = 8  # bytes: the length of the footer, and the magic number
_BEGIN = b"xstream.begin"


class ParquetParts:
    """Writes batches behind what a file has; `options` are those of pyarrow's ParquetWriter."""

    def __init__(self, file: BinaryIO, schema: Any, **options: Any) -> None:
        self.file, self.schema, self.options = file, schema, options
        self._begin = file.tell()
        self._part: Any = None
        self._empty = True  # the part has no rows yet
        if not self._begin:
            self._open()  # options that do not fit are refused before the run

    def _open(self) -> None:
        import pyarrow.parquet as pq

        self._part = pq.ParquetWriter(
            self.file, self.schema, write_page_checksum=True, **self.options
        )

    def write(self, batch: Any, group_rows: int | None = None) -> None:
        """Append a row group."""
        if self._part is None:
            self._open()
        self._part.write_batch(batch, group_rows)
        self._empty = False

    def commit(self) -> int:
        """End the part; return the length that the file can be cut back to, and gone on from."""
        if not self._empty:
            self._end_part()
        return self._begin

    def _end_part(self) -> None:
        if self._begin:
            self._part.add_key_value_metadata({_BEGIN.decode(): str(self._begin)})
        self._part.close()
        self.file.flush()
        self._part, self._begin, self._empty = None, self.file.tell(), True

    def finish(self) -> None:
        """Complete the file."""
        if not self._begin:
            self._end_part()
        else:
            self.commit()
            self.file.write(_joined(_footers(self.file, self._begin)))
            self.file.flush()

    def abort(self) -> None:
        """Leave the last part without a footer."""
        if self._part is not None:
            self._part.is_open = False  # or it would write one when it is freed


def _footers(file: BinaryIO, end: int) -> list[Any]:
    """The metadata of all parts up to `end`, in order; places count from the begin of the file."""
    found = []
    try:
        while end:
            metadata, end = _part_before(os.pread, file.fileno(), end)
            found.append(metadata)
    except (OSError, ValueError) as error:
        raise InputError(f"{file.name} is not a Parquet file that was cut back: {error}") from error
    return found[::-1]


def _part_before(read: Any, file: int, end: int) -> tuple[Any, int]:
    """The metadata of the part that ends here, and where it begins."""
    tail = read(file, _TAIL, end - _TAIL) if end > _TAIL else b""
    if tail[4:] != _MAGIC:
        raise ValueError(f"there is no footer before byte {end:,}")
    length = int.from_bytes(tail[:4], "little")
    if length > end - _TAIL:
        raise ValueError(f"the footer before byte {end:,} is too long")
    footer = read(file, length, end - _TAIL - length)
    begin = int((_metadata(footer).metadata or {}).get(_BEGIN, 0))
    if not 0 <= begin < end:
        raise ValueError(f"the part before byte {end:,} begins at {begin:,}")
    return _metadata(moved_footer(footer, begin)), begin


def _metadata(footer: bytes) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tail = len(footer).to_bytes(4, "little") + _MAGIC
    return pq.read_metadata(pa.BufferReader(_MAGIC + footer + tail))


def _joined(parts: list[Any]) -> bytes:
    """A footer over the row groups of all parts, with what follows it."""
    first, *others = parts
    for other in others:
        first.append_row_groups(other)
    whole = io.BytesIO()
    first.write_metadata_file(whole)
    return whole.getvalue()[len(_MAGIC) :]
