"""Input: flat files (plain or compressed), Parquet, or a generated directory, as raw rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from linearroad.generation.layout import Layout
from linearroad.generation.manifest import check_sizes, read_manifest
from linearroad.rowforms import (
    DETECTED_BYTES,
    PAPER,
    THESIS,
    Columns,
    RowForm,
    form_of_flat,
    form_of_names,
)
from linearroad.schema import FIELD_COUNT, LINE_TOO_LONG, REASONS, THESIS_FIELDS
from linearroad.tables.text import LONGEST_LINE, parse
from xstream.errors import InputError
from xstream.io.compression import open_stream
from xstream.io.page_checksums import has_page_checksums
from xstream.io.rereader import Rereader

__all__ = [
    "Chunk",
    "Reject",
    "RowReader",
    "length_s",
    "open_input",
    "unverified",
]

ROWS = 1 << 15  # per chunk; small enough to stay in the cache until it has been checked
BYTES = 1 << 21
SHOWN_BYTES = 200  # shown of a line that is too long


@dataclass(frozen=True)
class Chunk:
    """Parsed rows: the fifteen columns of the query, the line of each row, and its second.

    `times` are the seconds of the stream in which the rows arrive (`RowForm.times`).
    """

    columns: Columns
    origins: NDArray[np.int64]
    times: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.origins)

    def part(self, begin: int, end: int) -> Chunk:
        """The rows from `begin` to `end`."""
        columns = tuple(column[begin:end] for column in self.columns)
        return Chunk(columns, self.origins[begin:end], self.times[begin:end])


@dataclass(frozen=True)
class Reject:
    """A row that was not used."""

    line: int
    reason: str
    row: str


def _nobody(_: Reject) -> None:
    """Ignore a reject: the default callback."""


class RowReader(Protocol):
    """One file of rows."""

    name: str
    #: What its rows are.
    form: RowForm

    def chunks(self, begin_s: int = 0) -> Iterator[Chunk]:
        """The rows in file order; their origins are line numbers.

        Rows before second `begin_s` may be skipped if that is faster.
        """

    def row(self, line: int) -> str:
        """The text of a row in the file; fast for rows that were read recently."""

    #: Called with every row that cannot be parsed.
    on_reject: Callable[[Reject], None]


def _chunk(form: RowForm, columns: Columns, origins: NDArray[np.int64], clock: int) -> Chunk:
    """A chunk of rows that follow those that advanced the stream's clock to `clock`."""
    taken = form.columns(columns)
    return Chunk(taken, origins, form.times(taken, clock))


class _Recent:
    """The chunks whose rows may still be rejected: those of the second that is being gathered.

    A chunk is fully processed before the next one is requested. At that point only the last second
    of its good rows is incomplete, so chunks that ended before that second can be dropped.
    """

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Any]] = deque()
        self.clock = 0

    def add(self, chunk: Chunk, source: Any) -> None:
        """Add the newest chunk, and the source of the text of its rows."""
        while self._kept and self._kept[0][0] < self.clock:
            self._kept.popleft()
        if len(chunk):  # the query cannot reject rows of an empty chunk
            self.clock = int(chunk.times[-1])
            self._kept.append((self.clock, source))

    def __iter__(self) -> Iterator[Any]:
        return iter([source for _, source in list(self._kept)])  # another thread may append to it


class FlatReader:
    """A flat file of the benchmark. Keeps the text of recent chunks for rejects."""

    def __init__(self, path: Path, rules: str = "paper") -> None:
        self.name = path.name
        self.path = path
        self.form = PAPER if rules != "thesis" else form_of_flat(self._beginning())
        self.on_reject: Callable[[Reject], None] = _nobody
        self._recent = _Recent()
        self._lines = Rereader(self._read_lines)

    def _beginning(self) -> bytes:
        """The first lines, if they can be read; errors are reported when the file is read."""
        try:
            with self._open() as file:
                return bytes(file.read(DETECTED_BYTES))
        except (EOFError, OSError, pa.ArrowException):
            return b""

    def _open(self) -> AbstractContextManager[Any]:
        """The text; its lines are parsed here, because rejects need their text and number."""
        return closing(open_stream(self.path))

    def chunks(self, begin_s: int = 0) -> Iterator[Chunk]:
        rest, first_line = b"", 1
        long: _LongLine | None = None
        try:
            with self._open() as file:
                while True:
                    block = file.read(BYTES)
                    ended = not block
                    if long is not None:
                        begin = long.skip(block)
                        if begin < 0:
                            continue
                        self.on_reject(long.reject(first_line))
                        first_line, long, block = first_line + 1, None, block[begin:]
                    text = rest + block
                    while text:
                        used, lines, chunk = self._parsed(text, first_line, last=ended)
                        first_line += lines
                        text = text[used:]
                        if len(chunk):
                            yield chunk
                        if not lines:
                            break
                    if len(text) > LONGEST_LINE:
                        long, text = _LongLine(text), b""
                    rest = text
                    if ended:
                        return
        except (EOFError, OSError, pa.ArrowException) as error:
            raise InputError(f"{self.path} cannot be read to its end: {error}") from error

    def _parsed(self, text: bytes, first_line: int, last: bool) -> tuple[int, int, Chunk]:
        columns = np.empty((len(self.form.names), ROWS), np.int32)
        starts, bad = np.empty(ROWS + 1, np.int64), np.empty(ROWS, np.int64)
        reasons = np.empty(ROWS, np.int8)
        data = np.frombuffer(text, np.uint8)
        used, lines, good, wrong = parse(data, len(data), last, columns, starts, bad, reasons)
        numbers = np.arange(first_line, first_line + lines, dtype=np.int64)
        if wrong:
            numbers = np.delete(numbers, bad[:wrong])
        chunk = _chunk(self.form, tuple(columns[:, :good]), numbers, self._recent.clock)
        self._recent.add(chunk, (first_line, starts[: lines + 1], text[:used]))
        for line, reason in zip(bad[:wrong].tolist(), reasons[:wrong].tolist(), strict=True):
            row = text[starts[line] : starts[line + 1]].removesuffix(b"\n")
            shown = _shortened(row, len(row)) if reason == LINE_TOO_LONG else _as_read(row)
            self.on_reject(Reject(first_line + line, REASONS[reason], shown))
        return used, lines, chunk

    def row(self, line: int) -> str:
        for first_line, starts, text in self._recent:
            if first_line <= line < first_line + len(starts) - 1:
                at = line - first_line
                return _as_read(text[starts[at] : starts[at + 1]])
        return _as_read(self._lines.item(line - 1))

    def _read_lines(self) -> Iterator[bytes]:
        with self._open() as file:
            yield from file


class _LongLine:
    """A line that is too long: keeps its beginning and counts the rest."""

    def __init__(self, begin: bytes) -> None:
        self._begin, self._bytes = begin[:SHOWN_BYTES], len(begin)

    def skip(self, block: bytes) -> int:
        """The index of the next line in a block; -1 if this line continues after the block."""
        end = block.find(b"\n")
        self._bytes += len(block) if end < 0 else end
        return -1 if end < 0 and block else end + 1

    def reject(self, number: int) -> Reject:
        """The reject for this line, number `number` of the file."""
        return Reject(number, REASONS[LINE_TOO_LONG], _shortened(self._begin, self._bytes))


def _shortened(line: bytes, length: int) -> str:
    return f"{_as_read(line[:SHOWN_BYTES])}... ({length:,} bytes)"


def _as_read(line: bytes) -> str:
    return line.removesuffix(b"\n").removesuffix(b"\r").decode("ascii", "replace")


class ParquetReader:
    """A Parquet file with the columns of its form; the line of a row is its row number."""

    def __init__(self, path: Path, rules: str = "paper") -> None:
        self.name = path.name
        self.path = path
        try:
            self._file = pq.ParquetFile(
                path, page_checksum_verification=True, pre_buffer=False
            )  # pre_buffer would keep every row group that was read
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path} is not a Parquet file: {error}") from error
        present = set(self._file.schema_arrow.names)
        self.form = form_of_names(present, rules)
        self._names = list(self.form.names)
        missing = [name for name in self._names if name not in present]
        if missing:
            raise InputError(f"{path} has no column {missing[0]!r}")
        self.on_reject: Callable[[Reject], None] = _nobody
        self._recent = _Recent()
        self._batches = Rereader(self._read_batches)

    def chunks(self, begin_s: int = 0) -> Iterator[Chunk]:
        skipped = self._groups_before(begin_s)
        line = 1 + sum(self._file.metadata.row_group(g).num_rows for g in range(skipped))
        try:
            batches = self._file.iter_batches(
                ROWS, range(skipped, self._file.num_row_groups), self._names,
                use_threads=False,
            )  # fmt: skip
            for batch in batches:
                columns = tuple(self._column(batch, name) for name in self._names)
                lines = np.arange(line, line + batch.num_rows, dtype=np.int64)
                line += batch.num_rows
                chunk = _chunk(self.form, columns, lines, self._recent.clock)
                self._recent.add(chunk, (lines, columns))
                yield chunk
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{self.path} cannot be read to its end: {error}") from error

    def _groups_before(self, begin_s: int) -> int:
        """The number of leading row groups that end before a second, by their statistics."""
        place = self._file.schema_arrow.names.index("time")
        for group in range(self._file.num_row_groups):
            known = self._file.metadata.row_group(group).column(place).statistics
            if known is None or not known.has_min_max or known.max >= begin_s:
                return group
        return int(self._file.num_row_groups)

    def _column(self, batch: Any, name: str) -> NDArray[np.int32]:
        """A column as int32; without a copy if Arrow has it as int32 without nulls."""
        column = batch.column(name)
        if column.null_count:
            raise InputError(f"{self.path}: column {name!r} has nulls")
        if column.type == pa.int32():
            same: Any = np.from_dlpack(column)  # `to_numpy` would import pandas
            return cast("NDArray[np.int32]", same)
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        narrow = values.astype(np.int32)
        if values.dtype.kind not in "iu" or (narrow != values).any():
            raise InputError(f"{self.path}: column {name!r} is {values.dtype}, not int32")
        return narrow

    def row(self, line: int) -> str:
        for lines, columns in self._recent:
            at = line - int(lines[0])
            if 0 <= at < len(lines):
                return ",".join(str(column[at]) for column in columns)
        batch = self._batches.item((line - 1) // ROWS)
        return ",".join(str(column[(line - 1) % ROWS]) for column in batch.columns)

    def _read_batches(self) -> Iterator[Any]:
        file = pq.ParquetFile(self.path, pre_buffer=False)  # self's file is being read
        yield from file.iter_batches(ROWS, columns=self._names, use_threads=False)


class BinaryReader:
    """A file of the thesis' 36-byte rows: nine little-endian int32; a line is a row number."""

    WIDTH = 4 * THESIS_FIELDS

    def __init__(self, path: Path) -> None:
        self.name, self.path, self.form = path.name, path, THESIS
        self.on_reject: Callable[[Reject], None] = _nobody

    def chunks(self, begin_s: int = 0) -> Iterator[Chunk]:
        line, clock = 1, 0
        try:
            with self.path.open("rb") as file:
                while block := file.read(ROWS * self.WIDTH):
                    rows = self._rows(block)
                    lines = np.arange(line, line + rows.shape[1], dtype=np.int64)
                    line += rows.shape[1]
                    if rows.shape[1]:
                        chunk = _chunk(self.form, tuple(rows), lines, clock)
                        clock = int(chunk.times[-1])
                        yield chunk
                    if len(block) % self.WIDTH:
                        rest = block[-(len(block) % self.WIDTH) :].hex()
                        self.on_reject(Reject(line, REASONS[FIELD_COUNT], rest))
        except OSError as error:
            raise InputError(f"{self.path} cannot be read to its end: {error}") from error

    def _rows(self, block: bytes) -> NDArray[np.int32]:
        """The complete rows of a block, as nine columns."""
        rows = np.frombuffer(block, "<i4", len(block) // self.WIDTH * THESIS_FIELDS)
        return np.ascontiguousarray(rows.reshape(-1, THESIS_FIELDS).T.astype(np.int32))

    def row(self, line: int) -> str:
        with self.path.open("rb") as file:
            file.seek((line - 1) * self.WIDTH)
            return ",".join(str(value) for value in self._rows(file.read(self.WIDTH))[:, 0])


def open_input(
    path: Path, rules: str = "paper", numbers: Sequence[int] | None = None
) -> list[RowReader]:
    """Open the file `path`, or the expressway files of a generated directory, or some of them."""
    if path.is_dir():
        manifest = read_manifest(path)
        form = manifest["parameters"]["format"]
        layout, entries = Layout(path), manifest.get("traffic", [])
        everyone = range(int(manifest["parameters"]["expressways"]))
        expressways = everyone if numbers is None else numbers
        if numbers is not None and entries:
            entries = [entries[number] for number in numbers]
        check_sizes(path, entries)
        return [_reader(layout.traffic(xway, form), rules) for xway in expressways]
    if not path.exists():
        raise InputError(f"{path} does not exist")
    return [_reader(path, rules)]


def length_s(path: Path, minutes: int | None) -> int | None:
    """The length of a stream in seconds, if it is known before reading."""
    known = [] if minutes is None else [60 * minutes]
    if path.is_dir() and (length := read_manifest(path)["parameters"].get("minutes")) is not None:
        known.append(60 * int(length))
    return min(known, default=None)


def unverified(readers: list[RowReader]) -> list[Path]:
    """The Parquet files without page checksums, whose contents cannot be verified."""
    files = [reader for reader in readers if isinstance(reader, ParquetReader)]
    return [file.path for file in files if not has_page_checksums(file.path, file.form.names)]


def _reader(path: Path, rules: str) -> RowReader:
    if path.suffix == ".parquet":
        return ParquetReader(path, rules)
    if path.suffix == ".bin":
        if rules != "thesis":
            raise InputError(f"{path} has the thesis' 36-byte rows, which require --rules thesis")
        return BinaryReader(path)
    return FlatReader(path, rules)
