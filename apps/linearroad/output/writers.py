"""Output: answers as a flat file or Parquet, rejects, and the summary."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from linearroad.input import Reject
from linearroad.schema import (
    ALERT,
    BALANCE,
    EXPENDITURE,
    OUT_OF_ORDER,
    REASONS,
    SEGMENTS,
    TOLL,
    TRAVEL_TIME,
)
from linearroad.tables.text import format_answers, format_stamped
from xstream.console.folder import cut_back, opened
from xstream.errors import InputError
from xstream.io.background import BackgroundWriter, ColumnWriter
from xstream.io.parquet_parts import ParquetParts

__all__ = [
    "FORMATS",
    "RESULTS",
    "CsvAnswers",
    "ParquetAnswers",
    "RejectWriter",
    "WholeLines",
    "formats_of",
]

#: The files of a run, and those of other commands about it: the verdict and the report.
RESULTS = (
    "output.csv", "output.parquet", "digests.parquet", "summary.json", "rejects.csv",
    "timeline.csv", "validation.json", "differences.parquet", "report.html",
)  # fmt: skip
#: Those that a run goes on with after an interruption; the others are written at its end.
CONTINUED = ("output.csv", "output.parquet", "rejects.csv", "timeline.csv")
LONGEST_LINE = 100  # bytes; an answer has at most six numbers

_SCHEMA = pa.schema(
    [
        ("type", pa.int8()), ("time", pa.int32()), ("emit", pa.float64()), ("vid", pa.int32()),
        ("qid", pa.int32()), ("lav", pa.int32()), ("toll", pa.int64()), ("seg", pa.int32()),
        ("resulttime", pa.int32()), ("bal", pa.int64()), ("traveltime", pa.int32()),
    ]
)  # fmt: skip


_STAMPED_SCHEMA = pa.schema(
    [("arrival", pa.float64()), ("type", pa.int8())] + [(f"f{i}", pa.int64()) for i in range(1, 5)]
)

#: Types of the columns type, time, emit, who, value and amount.
ANSWER_DTYPES = ("int8", "int32", "int64", "int32", "int32", "int64")


def _nothing(dtype: str) -> NDArray[Any]:
    """An empty column, read-only like the arrays of segments."""
    array = np.empty(0, dtype)
    array.flags.writeable = False
    return array


class WholeLines:
    """A flat file that is cut back to its last whole line if the disk is full."""

    def __init__(self, path: Path, go_on: bool = False) -> None:
        self.path = path
        self.file: BinaryIO = opened(path, go_on)
        self.bytes = 0

    def write(self, lines: memoryview) -> None:
        """Append whole lines."""
        left = lines
        try:
            while left:
                left = left[self.file.write(left) :]
        except OSError as error:
            self.file.truncate(self.bytes)
            raise InputError(f"{self.path} cannot be written: {error.strerror}") from error
        self.bytes += len(lines)


class CsvAnswers:
    """`output.csv`, in the formats of docs/linear-road-rules.md, section 4.1.

    Only whole lines are written; if a run is killed, the last line may be incomplete.
    """

    def __init__(self, path: Path, go_on: bool = False) -> None:
        self.path = path
        self._lines = WholeLines(path, go_on)
        self.write(*(_nothing(dtype) for dtype in ANSWER_DTYPES))  # compiles before the run

    def _format(self, text: NDArray[np.uint8], columns: tuple[NDArray[Any], ...]) -> int:
        """Write answers as lines of text; returns the number of bytes."""
        return int(format_answers(text, *columns))

    def write(self, *columns: NDArray[Any]) -> None:
        text = np.empty(LONGEST_LINE * len(columns[0]), np.uint8)
        used = self._format(text, columns)
        self._lines.write(memoryview(text[:used].data))

    def save_state(self) -> dict[str, Any]:
        """The length of the file, all of which is on disk."""
        os.fdatasync(self._lines.file.fileno())
        return {"bytes": self._lines.bytes}

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Cut the file back."""
        self._lines.bytes = int(saved["bytes"])
        cut_back(self._lines.file, self.path, self._lines.bytes)

    def close(self) -> None:
        self._lines.file.close()


class StampedCsvAnswers(CsvAnswers):
    """`output.csv` by the rules of the thesis: `Arrival,Type,f1,f2,f3,f4`."""

    def _format(self, text: NDArray[np.uint8], columns: tuple[NDArray[Any], ...]) -> int:
        kind, _, emit, who, value, amount = columns
        return int(format_stamped(text, kind, emit, who, value, amount))


class ParquetAnswers:
    """`output.parquet`: one table; fields that do not belong to a type are null."""

    schema = _SCHEMA

    def __init__(self, path: Path, go_on: bool = False) -> None:
        self.path = path
        try:
            self._file = opened(path, go_on)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error}") from error
        if not go_on:
            self._begin()

    def _begin(self) -> None:
        """Go on behind what the file has."""
        self._parts = ParquetParts(self._file, self.schema, compression="lz4", use_dictionary=False)

    def _columns(self, columns: tuple[NDArray[Any], ...]) -> list[Any]:
        """The columns of the table."""
        kind, time, emit, who, value, amount = columns
        toll, alert, travel = kind == TOLL, kind == ALERT, kind == TRAVEL_TIME
        vehicle = toll | alert
        balance = (kind == BALANCE) | (kind == EXPENDITURE)
        return [
            pa.array(kind), pa.array(time), pa.array(emit / 1000.0),
            pa.array(who, mask=~vehicle), pa.array(who, mask=vehicle), pa.array(value, mask=~toll),
            pa.array(amount, mask=~(toll | travel)), pa.array(value, mask=~alert),
            pa.array(value, mask=kind != BALANCE), pa.array(amount, mask=~balance),
            pa.array(value, mask=~travel),
        ]  # fmt: skip

    def write(self, *columns: NDArray[Any]) -> None:
        try:
            batch = pa.record_batch(self._columns(columns), schema=self.schema)
            self._parts.write(batch)
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error}") from error

    def save_state(self) -> dict[str, Any]:
        """The length of the file, all of which is on disk."""
        length = self._parts.commit()
        os.fdatasync(self._file.fileno())
        return {"bytes": length}

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Cut the file back, and go on."""
        cut_back(self._file, self.path, int(saved["bytes"]))
        self._begin()

    def close(self) -> None:
        try:
            self._parts.finish()
            self._file.close()
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error}") from error


class StampedParquetAnswers(ParquetAnswers):
    """`output.parquet` by the rules of the thesis: arrival, type, f1 to f4."""

    schema = _STAMPED_SCHEMA

    def _columns(self, columns: tuple[NDArray[Any], ...]) -> list[Any]:
        kind, _, emit, who, value, amount = columns
        wide, nothing = value.astype(np.int64), np.zeros(len(kind), np.int64)
        toll, alert, travel = kind == TOLL, kind == ALERT, kind == TRAVEL_TIME
        third = [toll, alert, travel], [wide, wide % SEGMENTS, amount]
        return [
            pa.array(emit / 1000.0), pa.array(kind), pa.array(who.astype(np.int64)),
            pa.array(np.where(travel, wide, amount)), pa.array(np.select(*third)),
            pa.array(np.where(alert, wide // SEGMENTS, nothing)),
        ]  # fmt: skip


class BackgroundAnswers(BackgroundWriter):
    """`output.parquet`, written in a thread of its own."""

    def __init__(self, answers: ParquetAnswers) -> None:
        super().__init__(answers)
        self._answers = answers

    def save_state(self) -> dict[str, Any]:
        """Everything that was given is on disk."""
        self.drain()
        return self._answers.save_state()

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Go on from there; nothing was given yet."""
        self._answers.load_state(saved)


def _parquet(path: Path, go_on: bool = False) -> ColumnWriter:
    return BackgroundAnswers(ParquetAnswers(path, go_on))


def _stamped_parquet(path: Path, go_on: bool = False) -> ColumnWriter:
    return BackgroundAnswers(StampedParquetAnswers(path, go_on))


Writers = dict[str, Callable[..., ColumnWriter]]
#: The formats that answers are written in, as `output.<format>`.
FORMATS: Writers = {"csv": CsvAnswers, "parquet": _parquet}
STAMPED_FORMATS: Writers = {"csv": StampedCsvAnswers, "parquet": _stamped_parquet}


def formats_of(rules: str) -> Writers:
    """The writers of a rule set, by format."""
    return STAMPED_FORMATS if rules == "thesis" else FORMATS


class RejectWriter:
    """`rejects.csv`: line number, reason, the row as read, and the file if there are several."""

    def __init__(self, path: Path, several_files: bool, go_on: bool = False) -> None:
        self._path, self._bytes = path, opened(path, go_on)
        self._file = io.TextIOWrapper(io.BufferedWriter(self._bytes), newline="\n")
        self._lock = threading.Lock()  # used by several threads
        self._several = several_files
        self._on_disk = 0
        self.by_reason: dict[str, int] = {}
        #: A sentence about the first row of each reason.
        self._first: dict[str, str] = {}

    def write(self, reject: Reject, file_name: str) -> None:
        """Append a reject."""
        fields = [str(reject.line), reject.reason, reject.row]
        if self._several:
            fields.append(file_name)
        with self._lock:
            if reject.reason not in self._first:
                where = f" of {file_name}" if self._several else ""
                self._first[reject.reason] = f"line {reject.line:,}{where}"
            self.by_reason[reject.reason] = self.by_reason.get(reject.reason, 0) + 1
            self._file.write(",".join(fields) + "\n")

    def save_state(self) -> dict[str, Any]:
        """The figures, and the length of the file, all of which is on disk."""
        with self._lock:
            self._file.flush()
            length = os.fstat(self._bytes.fileno()).st_size
            if length != self._on_disk:
                os.fdatasync(self._bytes.fileno())
            self._on_disk = length
            return {"bytes": length, "by_reason": dict(self.by_reason), "first": dict(self._first)}

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Cut the file back, and go on with the figures."""
        self._on_disk = int(saved["bytes"])
        cut_back(self._bytes, self._path, self._on_disk)
        self.by_reason, self._first = dict(saved["by_reason"]), dict(saved["first"])

    @property
    def first(self) -> str:
        """A sentence about the first reject of the first reason."""
        return next((f"{line}: {reason}" for reason, line in self._first.items()), "")

    def disorder_sentence(self) -> str | None:
        """Advice about rows that are out of order by Time; None if there are none."""
        reason = REASONS[OUT_OF_ORDER]
        if reason not in self._first:
            return None
        return (
            f"{self.by_reason[reason]:,} rows were rejected because their Time is before that of a "
            f"row above them, first {self._first[reason]}: if a row above it has a wrong Time, "
            "correct or remove that row, else sort the file by Time, and run again"
        )

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()
