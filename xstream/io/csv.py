"""`xs.io.csv`: columns of text files."""

from __future__ import annotations

import csv as text_rows
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream.errors import GraphError, InputError
from xstream.io.compression import compression_of, open_compressed, open_input
from xstream.io.contents import Contents
from xstream.io.feed import Block
from xstream.io.file import read_only_file, without
from xstream.io.output import Columns, OutputFile, Signals
from xstream.io.parallel import in_order
from xstream.io.quarantine import Quarantine
from xstream.io.table import TableFile, arrow_batch, arrow_schema

__all__ = ["CsvFile", "csv"]

#: The size of a parsed chunk in bytes, and the largest length of a line.
CHUNK_BYTES = 4 << 20
LONGEST_LINE_BYTES = 8 << 20
_ARROW_BLOCK_BYTES = 1 << 20
#: Chunks of larger files that are parsed ahead, so that pyarrow's threads always have work.
_CHUNKS_AHEAD = 2
_LARGE_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class CsvFile(TableFile):
    """Numbers in lines of text, parsed by pyarrow in chunks."""

    kind = "csv"
    header: bool = True
    delimiter: str = ","
    dtype: Any = np.float64

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.delimiter, str) or len(self.delimiter.encode()) != 1:
            raise GraphError(f"csv: a delimiter is one character, not {self.delimiter!r}")

    # -- contents ----------------------------------------------------------------------------

    def contents(self) -> Contents:
        read_only_file(self.kind, self.path)
        names = self.chosen(self._names())
        return Contents(names, tuple(self._dtype_of(name) for name in names))

    def _dtype_of(self, name: str) -> np.dtype[Any]:
        wanted = self.dtype.get(name, np.float64) if isinstance(self.dtype, Mapping) else self.dtype
        try:
            dtype = np.dtype(wanted)
        except TypeError:
            raise GraphError(f"csv: column {name!r} cannot be of type {wanted!r}") from None
        if dtype.kind not in "iufb" or dtype == np.float16:
            raise GraphError(
                f"csv: column {name!r} cannot be {dtype}: columns are booleans, integers, float32 "
                "or float64"
            )
        return dtype

    def _names(self) -> list[str]:
        """The names of all columns, from the first line."""
        with open_input(self.path) as stream:
            line, _ = next(_chunks(stream, self.path, 1 << 16), (b"", 0))
        try:
            first = line.removeprefix(_BOM).split(b"\n", 1)[0].decode().rstrip("\r")
            fields = next(text_rows.reader([first], delimiter=self.delimiter), [])
        except (UnicodeDecodeError, text_rows.Error) as error:
            raise InputError(f"csv: {self.path}: line 1 is not text: {error}") from error
        if not fields:
            raise InputError(f"csv: {self.path}: line 1 is empty")
        if self.header:
            return fields
        return ["value"] if len(fields) == 1 else [f"c{i}" for i in range(len(fields))]

    # -- reading -----------------------------------------------------------------------------

    def blocks(self, row: int, quarantine: Quarantine | None) -> Iterator[Block]:
        yield from without(self._all_blocks(quarantine), row)

    def _all_blocks(self, quarantine: Quarantine | None) -> Iterator[Block]:
        parser = _Parser(self, self._names(), self.contents(), quarantine)
        with open_input(self.path) as stream:
            chunks = self._rows(_chunks(stream, self.path, CHUNK_BYTES))
            ahead = _CHUNKS_AHEAD if self.path.stat().st_size > _LARGE_BYTES else 0
            parsed = in_order(parser.parsed_chunk, chunks, ahead)
            for text, offset, blocks in parsed:
                yield from parser.with_bad_lines(text, offset) if blocks is None else blocks

    def _rows(self, chunks: Iterator[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
        """The chunks without the header."""
        for text, offset in chunks:
            begin = 0 if offset else self._begin(text)
            yield text[begin:] if begin else text, offset + begin

    def _begin(self, text: bytes) -> int:
        """The offset of the first line of numbers."""
        if self.header:
            return text.find(b"\n") + 1 or len(text)
        return len(_BOM) if text.startswith(_BOM) else 0

    # -- writing -----------------------------------------------------------------------------

    def writer(self, output: OutputFile, signals: Signals) -> CsvWriter:
        schema = arrow_schema(signals, self.index)
        return CsvWriter(self, output, schema)


def _chunks(stream: Any, path: Path, size: int) -> Iterator[tuple[bytes, int]]:
    """Chunks of complete lines, with the offset of each."""
    rest, offset = b"", 0
    while piece := stream.read(size):
        end = piece.rfind(b"\n") + 1
        if end:
            text = b"".join((rest, memoryview(piece)[:end]))
            yield text, offset
            offset += len(text)
            rest = piece[end:]
        else:
            rest += piece
        if len(rest) > LONGEST_LINE_BYTES:
            raise InputError(
                f"{path}: byte {offset}: a line is longer than {LONGEST_LINE_BYTES:,} bytes"
            )
    if rest:
        yield rest, offset


class _Parser:
    """Parses lines as columns. Lines that cannot be parsed are found by bisection."""

    def __init__(
        self,
        file: CsvFile,
        names: Sequence[str],
        contents: Contents,
        quarantine: Quarantine | None,
    ) -> None:
        import pyarrow as pa
        import pyarrow.csv as pcsv

        self.file, self.names, self.contents, self.quarantine = file, names, contents, quarantine
        self.counted = (0, 1)  # an offset, and the number of its line
        self.read = pcsv.read_csv
        self.buffer = pa.BufferReader
        self.invalid = pa.ArrowInvalid
        types = {
            name: pa.from_numpy_dtype(dtype)
            for name, dtype in zip(contents.names, contents.dtypes, strict=True)
        }
        self.read_options = {
            threads: pcsv.ReadOptions(
                column_names=names, block_size=_ARROW_BLOCK_BYTES, use_threads=threads
            )
            for threads in (False, True)
        }
        self.options = {
            "parse_options": pcsv.ParseOptions(
                delimiter=file.delimiter, newlines_in_values=False, ignore_empty_lines=True
            ),
            "convert_options": pcsv.ConvertOptions(
                column_types=types, include_columns=contents.names, check_utf8=False
            ),
        }

    def parsed_chunk(self, chunk: tuple[bytes, int]) -> tuple[bytes, int, list[Block] | None]:
        """A chunk, its offset and its blocks; None if it contains a bad line."""
        text, offset = chunk
        blocks = self._parsed(text)
        return (b"" if blocks is not None else text), offset, blocks

    def _lines(self, text: bytes, offset: int) -> Iterator[Block]:
        blocks = self._parsed(text)
        yield from self.with_bad_lines(text, offset) if blocks is None else blocks

    def with_bad_lines(self, text: bytes, offset: int) -> Iterator[Block]:
        """The columns of lines with a bad one among them; those before it are yielded first."""
        middle = text.find(b"\n", len(text) // 2, len(text) - 1) + 1
        middle = middle or text.rfind(b"\n", 0, len(text) // 2) + 1
        if middle:
            yield from self._lines(text[:middle], offset)
            yield from self._lines(text[middle:], offset + middle)
            return
        self._put_aside(text, offset)
        if self.file.layout != "rows":  # later samples keep their indices
            yield [_missing(dtype) for dtype in self.contents.dtypes]

    def _parsed(self, text: bytes) -> list[Block] | None:
        """Blocks of columns; None for a bad line."""
        if not text or text.isspace():
            return []
        try:
            read_options = self.read_options[len(text) > _ARROW_BLOCK_BYTES]
            table = self.read(self.buffer(text), read_options, **self.options)
        except self.invalid:
            return None
        blocks: list[Block] = []
        for batch in table.to_batches():
            columns = []
            for name, dtype in zip(self.contents.names, self.contents.dtypes, strict=True):
                column = batch.column(name)
                if column.null_count:
                    if dtype.kind != "f":
                        return None
                    column = column.fill_null(np.nan)
                columns.append(column.to_numpy(zero_copy_only=False))
            blocks.append(columns)
        return blocks

    def _put_aside(self, text: bytes, offset: int) -> None:
        """Raise an error for a bad line, or quarantine it."""
        line, shown = self._line(offset), text.decode(errors="replace").rstrip("\r\n")
        reason = self._reason(shown)
        if self.quarantine is None:
            raise InputError(f"{self.file.path}: line {line}: {reason}")
        self.quarantine.put(self.file.path, "line", line, reason, shown)

    def _reason(self, line: str) -> str:
        try:
            fields = next(text_rows.reader([line], delimiter=self.file.delimiter), [])
        except text_rows.Error as error:
            return str(error).partition(" - ")[0]
        if len(fields) != len(self.names):
            count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
            return f"{count} instead of {len(self.names)}"
        for name, dtype in zip(self.contents.names, self.contents.dtypes, strict=True):
            value = fields[list(self.names).index(name)]
            try:
                np.dtype(dtype).type(value if value.strip() else "none")
            except (ValueError, OverflowError):
                return f"column {name!r}: {shortened_text(value)} is not {dtype}"
        return "it cannot be parsed"

    def _line(self, offset: int) -> int:
        """The number of the line at an offset; counted on demand because bad lines are rare."""
        at, line = self.counted
        with open_input(self.file.path) as stream:
            _skip(stream, at)
            while at < offset and (piece := stream.read(min(offset - at, CHUNK_BYTES))):
                at += len(piece)
                line += int(np.count_nonzero(np.frombuffer(piece, np.uint8) == ord("\n")))
        self.counted = (at, line)
        return line


def _skip(stream: Any, size: int) -> None:
    while size and (skipped := len(stream.read(min(size, CHUNK_BYTES)))):
        size -= skipped


def shortened_text(text: str) -> str:
    """Text from the input, shortened for a message."""
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _missing(dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return np.full(1, np.nan if dtype.kind == "f" else 0, dtype)


class CsvWriter:
    """Writes a line of names, then lines of numbers."""

    def __init__(self, file: CsvFile, output: OutputFile, schema: Any) -> None:
        import pyarrow.csv as pcsv

        self.output, self.schema = output, schema
        self.compression = compression_of(file.path)
        began = output.file.tell()
        self.stream = open_compressed(output.file, self.compression)
        if file.header and not began:
            line = io.StringIO()
            text_rows.writer(line, delimiter=file.delimiter, lineterminator="\n").writerow(
                schema.names
            )
            self.stream.write(line.getvalue().encode())
        self.write_csv = pcsv.write_csv
        self.options = pcsv.WriteOptions(include_header=False, delimiter=file.delimiter)

    def write(self, columns: Columns) -> None:
        """Append lines."""
        import pyarrow as pa

        text = pa.BufferOutputStream()
        self.write_csv(arrow_batch(columns, self.schema), text, self.options)
        self.stream.write(text.getvalue())

    def commit(self) -> int | None:
        """Flush the lines to disk; compressed files cannot be cut back."""
        return self.output.sync() if self.compression is None else None

    def finish(self) -> None:
        """Complete the file."""
        if self.compression is not None:
            self.stream.close()
        self.output.complete()

    def abort(self) -> None:
        """Leave it incomplete."""
        self.output.close()


def csv(
    path: str | Path,
    rate_hz: float | None = None,
    window: int = 4096,
    *,
    columns: Sequence[str] | None = None,
    dtype: Any = np.float64,
    header: bool = True,
    delimiter: str = ",",
    index: bool = False,
    **options: Any,
) -> CsvFile:
    """Columns of a text file as segments, or with `layout="rows"` its lines as tuples.

    Columns are float64 unless `dtype` gives another type, or a dictionary of types by column.
    Without a `header` columns are called `c0`, `c1` and so on, a single one `value`. gz, xz and zst
    files are decompressed. A bad line is an error that names it; with `on_error="quarantine"` and
    `quarantine=FILE` it goes to that file, up to `budget` lines, and is replaced by NaN (0 for
    integers) in a stream of samples. As a sink it writes the fields of a stream as columns: one
    line for each sample, or for each tuple of scalars; `index=True` adds the index of each sample.
    The other options are those of all files (docs/sources.md).

    >>> import pathlib, xstream as xs
    >>> _ = pathlib.Path("events.csv").write_text("start,level\\n3,0.5\\n7,0.25\\n")
    >>> q = xs.Query()
    >>> events = q.source(xs.io.csv("events.csv", dtype={"start": int}, layout="rows"))
    >>> out = events.collect()
    >>> q.run()[out]
    [(3, 0.5), (7, 0.25)]
    """
    return CsvFile(
        Path(path), window, rate_hz=rate_hz, columns=columns, dtype=dtype,  # type: ignore[arg-type]
        header=header, delimiter=delimiter, index=index, **options,
    )  # fmt: skip
