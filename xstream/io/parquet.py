"""`xs.io.parquet`: columns of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, cast

import numpy as np

from xstream.errors import InputError
from xstream.io.contents import Contents
from xstream.io.feed import Block
from xstream.io.file import read_only_file
from xstream.io.output import Columns, OutputFile, Signals
from xstream.io.parallel import DECODERS, in_order
from xstream.io.parquet_parts import ParquetParts
from xstream.io.quarantine import DamagedInput, Quarantine
from xstream.io.table import TableFile, arrow_batch, arrow_schema
from xstream.io.verified import VerifiedFile

__all__ = ["ParquetFile", "parquet"]

#: The number of rows in a row group.
GROUP_ROWS = 1 << 20
#: Row groups of up to this size are decoded as a whole, several at once; larger ones in batches.
_WHOLE_GROUP_BYTES = 32 << 20


@dataclass(frozen=True, eq=False)
class ParquetFile(TableFile):
    """A Parquet file, read batch by batch."""

    kind = "parquet"
    compression: str = "snappy"
    #: Whether the checksums of pages are verified.
    checksums: bool = True

    @contextmanager
    def _opened(self, metadata: Any = None) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        read_only_file(self.kind, self.path)
        verified = VerifiedFile(self.path) if self.checksums else None
        try:
            with closing(verified or BytesIO()), pq.ParquetFile(
                verified or self.path, metadata=metadata, memory_map=False, pre_buffer=False
            ) as file:  # fmt: skip
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DamagedInput(
                f"parquet: {self.path} cannot be read as Parquet: {one_line(error)}"
            ) from error

    def contents(self) -> Contents:
        with self._opened() as file:
            return self.contents_of(file.schema_arrow, file.metadata.num_rows)

    def blocks(self, row: int, quarantine: Quarantine | None) -> Iterator[Block]:
        contents = self.contents()
        with self._opened() as file:
            groups, first = _groups_from(file.metadata, row)
            batches = self._batches(file, groups, contents)
            yield from self.arrow_blocks(batches, contents, row - first, quarantine)

    def _batches(self, file: Any, groups: list[int], contents: Contents) -> Iterator[Any]:
        rows, names = self.batch_rows(contents), list(contents.names)
        row_bytes = sum(dtype.itemsize for dtype in contents.dtypes)
        largest = max((file.metadata.row_group(group).num_rows for group in groups), default=0)
        if len(groups) > 1 and largest * row_bytes <= _WHOLE_GROUP_BYTES:
            for table in self._tables(file.metadata, groups, names):
                yield from table.to_batches(rows)
        elif groups:
            yield from file.iter_batches(rows, row_groups=groups, columns=names)

    def _tables(self, metadata: Any, groups: list[int], names: list[str]) -> Iterator[Any]:
        """Row groups, decoded on several threads; each uses a reader of its own."""
        readers: SimpleQueue[Any] = SimpleQueue()

        def table(group: int) -> Any:
            reader = readers.get()
            try:
                return reader.read_row_group(group, names, use_threads=False)
            finally:
                readers.put(reader)

        with ExitStack() as stack:
            for _ in range(DECODERS):
                readers.put(stack.enter_context(self._opened(metadata)))
            yield from in_order(table, iter(groups))

    def writer(self, output: OutputFile, signals: Signals) -> ParquetWriter:
        return ParquetWriter(output, arrow_schema(signals, self.index), self.compression)


def _groups_from(metadata: Any, row: int) -> tuple[list[int], int]:
    """The row groups that contain rows from `row` on, and the first row of the first group."""
    first = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if first + rows > row:
            return list(range(group, metadata.num_row_groups)), first
        first += rows
    return [], first


def one_line(error: BaseException) -> str:
    """The first line of a library's message."""
    return str(error).strip().partition("\n")[0].rstrip(".")


class ParquetWriter:
    """Collects row groups and writes them, with checksums; a footer at the end completes the file.

    It can be cut back to the end of a part and continued (`ParquetParts`)."""

    def __init__(self, output: OutputFile, schema: Any, compression: str) -> None:
        import pyarrow as pa

        self.output, self.schema = output, schema
        try:
            self.parts = ParquetParts(cast(BinaryIO, output.file), schema, compression=compression)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{output.path} cannot be written: {one_line(error)}") from error
        self.waiting: list[Columns] = []
        self.rows = 0

    def write(self, columns: Columns) -> None:
        """Add rows; a group is written when it is full."""
        self.waiting.append(columns)
        self.rows += len(columns[0])
        if self.rows >= GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        if self.rows:
            columns = [np.concatenate(parts) for parts in zip(*self.waiting, strict=True)]
            self.parts.write(arrow_batch(columns, self.schema), self.rows)
        self.waiting, self.rows = [], 0

    def commit(self) -> int | None:
        """Write the rows that wait as a group, end the part, and flush it to disk."""
        self._write_group()
        self.parts.commit()
        return self.output.sync()

    def finish(self) -> None:
        """Write the last group and the footer."""
        self._write_group()
        self.parts.finish()
        self.output.complete()

    def abort(self) -> None:
        """Leave it incomplete: without a footer it is not a valid Parquet file."""
        self.parts.abort()
        self.output.close()


def parquet(
    path: str | Path,
    rate_hz: float | None = None,
    window: int = 4096,
    *,
    columns: Sequence[str] | None = None,
    index: bool = False,
    compression: str = "snappy",
    checksums: bool = True,
    **options: Any,
) -> ParquetFile:
    """Columns of a Parquet file as segments, all in one tuple or as separate streams.

    `layout="rows"` makes a tuple of scalars of every row instead. As a sink it writes the fields of
    a stream as columns: one row for each sample, or for each tuple of scalars; `index=True` adds
    the index of each sample. Page checksums are written, and verified unless `checksums=False`,
    which takes a fifth less processor time. Row groups of up to 32 MB are decoded in parallel. The rate is written to the file's metadata and read
    from there. The other options are those of all files (docs/sources.md).

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> ramp = q.source(xs.io.array(np.arange(5), rate_hz=10.0))
    >>> written = ramp.write(xs.io.parquet("ramp.parquet"))
    >>> run = q.run()
    >>> q = xs.Query()
    >>> out = q.source(xs.io.parquet("ramp.parquet", columns=["value"], window=3)).collect()
    >>> q.run()[out]
    [<SigSeg 3 samples [0, 3) int64 at 10 Hz, 1 piece, refcount-lazy>, <SigSeg 2 samples [3, 5) int64 at 10 Hz, 1 piece, refcount-lazy>]
    """  # noqa: E501
    return ParquetFile(
        Path(path), window, rate_hz=rate_hz, columns=columns, index=index,  # type: ignore[arg-type]
        compression=compression, checksums=checksums, **options,
    )  # fmt: skip
