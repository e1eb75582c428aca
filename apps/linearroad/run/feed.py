"""Feeds rows of a file into the query, at full speed or paced, and collects its rejects."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import xstream as xs
from linearroad.input import Chunk, Reject, RowReader
from linearroad.run.memory import ExpresswayCount
from linearroad.schema import FIELDS, REASONS, XWAY
from xstream.io.paced_rows import PacedRows
from xstream.io.schedule import Schedule

__all__ = ["NO_ROWS", "RAW", "Feed", "RejectTaker", "raw_rows"]

#: The raw rows: fifteen columns one after another (`INPUT_COLUMNS`), the line of each row, and the
#: second up to which all rows have been passed in (-1: not known).
RAW = xs.schema({"rows": xs.Segment(np.int32), "origin": xs.Segment(np.int64), "upto": int})


#: Rows that enter the query at a time, copies included: at Ctrl-C they are completed first.
ROWS_IN_FLIGHT = 1 << 20


class RejectTaker(Protocol):
    """Takes rejected rows, from several threads."""

    def write(self, reject: Reject, file_name: str) -> None:
        """Take a reject."""


def _at_once() -> None:
    """Rows may be given from the beginning."""


class Feed:
    """A file as input of the query, and the handling of rejected rows."""

    def __init__(
        self,
        reader: RowReader,
        number: int,
        schedule: Schedule,
        rejects: RejectTaker,
        manager: xs.MemoryManager,
        ready: Callable[[], None] = _at_once,
        copies: int = 1,
    ) -> None:
        self.reader, self.rejects = reader, rejects
        reader.on_reject = self._hold
        self.number = number  # index of the file in the input
        self.manager = manager  # of the query, so that rows are copied only once
        self._ready = ready  # returns when rows may be given
        self.pace: PacedRows[Chunk] = PacedRows(schedule, max(ROWS_IN_FLIGHT // copies, 1))
        self._expressways = ExpresswayCount()
        self.rows = 0
        self.implausible = 0
        self._line = self._clock = 0  # of the last row that was given
        self._held: deque[Reject] = deque()  # rows that could not be parsed, until their turn
        self._ended = False
        #: Rows that are read while others are, if the run goes on from a checkpoint.
        self._found: Future[Iterator[Chunk]] | None = None

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """Raw rows (`RAW`). A stream that is stopped ends with a complete second."""
        if self._ended:
            return
        self._ready()
        found = self._found
        chunks = self._chunks(self._line, self._clock) if found is None else found.result()
        for chunk, upto in self.pace.given(chunks):
            if chunk is not None:
                self.rows += len(chunk)
                self._expressways.add(chunk.columns[XWAY])
                self._line, self._clock = int(chunk.origins[-1]), int(chunk.times[-1])
                self._release(self._line)
            yield raw_rows(NO_ROWS if chunk is None else chunk, upto, self.manager)
        self._ended = True
        self._release(None)

    def _chunks(self, line: int, clock: int) -> Iterator[Chunk]:
        """The rows behind a line of a second, of which the first are read now."""
        begin_s = max(int(self.pace.schedule.time.begin_s), clock)
        chunks = _behind(self.reader.chunks(begin_s), line)
        return chain([first], chunks) if (first := next(chunks, None)) is not None else chunks

    # -- rejects -----------------------------------------------------------------------------

    def _hold(self, reject: Reject) -> None:
        """Keep a row that could not be parsed until the rows around it are given."""
        if reject.line > self._line:
            self._held.append(reject)

    def _release(self, line: int | None) -> None:
        """Write the rejects up to a line, or all."""
        while self._held and (line is None or self._held[0].line <= line):
            self.rejects.write(self._held.popleft(), self.reader.name)

    # -- checkpoints -------------------------------------------------------------------------

    def save_state(self) -> dict[str, Any]:
        """What another run goes on from: the rows that were given, and what came of them."""
        return {
            "file": self.reader.name, "bytes": self._bytes(), "line": self._line,
            "clock": self._clock, "rows": self.rows, "implausible": self.implausible,
            "ended": self._ended, "pace": self.pace.save_state(),
        }  # fmt: skip

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Go on behind the rows that were given."""
        if (saved["file"], saved["bytes"]) != (self.reader.name, self._bytes()):
            raise xs.InputError(
                f"the checkpoint is of {saved['file']} with {saved['bytes']:,} bytes, and this is "
                f"{self.reader.name} with {self._bytes():,}"
            )
        before, behind = (self._line, self._clock), (int(saved["line"]), int(saved["clock"]))
        if self._found is not None and behind != before:  # the latest checkpoint is damaged
            self._found.exception()
            self._held.clear()
            self._found = None
        self._line, self._clock = behind
        self.rows, self.implausible = int(saved["rows"]), int(saved["implausible"])
        self._ended = bool(saved["ended"])
        self.pace.load_state(saved["pace"])
        self._read_behind()

    def look_ahead(self, saved: object) -> None:
        """Begin to read the rows behind those of a state that will probably be loaded."""
        known = saved if isinstance(saved, dict) else {}
        line, clock = known.get("line"), known.get("clock")
        if isinstance(line, int) and isinstance(clock, int):
            self._line, self._clock = line, clock
            self._read_behind()

    def _read_behind(self) -> None:
        """Have the first rows read meanwhile: up to half a million come before them."""
        if self._found is None:
            self._found = _readers().submit(self._chunks, self._line, self._clock)

    def _bytes(self) -> int:
        path: Path | None = getattr(self.reader, "path", None)
        return 0 if path is None else path.stat().st_size

    def end_rejects_in_sinks(self, checked: xs.Stream, reported: xs.Stream) -> None:
        """Connect sinks for the rejects and counts of the query."""
        for stream in (checked, reported):
            stream.select("reject").filter(_any).sink(self._take_rejects)
        reported.select("implausible").filter(_some).sink(self._take_implausible)

    def _take_rejects(self, rejects: xs.SigSeg) -> None:
        for line, reason in np.asarray(rejects).tolist():
            reject = Reject(line, REASONS[reason], self.reader.row(line))
            self.rejects.write(reject, self.reader.name)

    def _take_implausible(self, speeds: int) -> None:
        self.implausible += speeds


@cache
def _readers() -> ThreadPoolExecutor:
    """Threads that find the first rows of files."""
    return ThreadPoolExecutor(os.cpu_count(), "rows")


def _behind(chunks: Iterator[Chunk], line: int) -> Iterator[Chunk]:
    """The rows behind a line."""
    for chunk in chunks:
        if chunk.origins[0] > line:
            yield chunk
        elif chunk.origins[-1] > line:
            yield chunk.part(int(np.searchsorted(chunk.origins, line, "right")), len(chunk))


def raw_rows(chunk: Chunk, upto: int, manager: xs.MemoryManager) -> tuple[Any, ...]:
    """A chunk as the query takes it (`RAW`)."""
    with xs.SigSeg.build(FIELDS * len(chunk), np.int32, memory=manager) as buffer:
        np.concatenate(chunk.columns, out=buffer.array)
    return buffer.segment, xs.SigSeg(chunk.origins, memory=manager), upto


NO_ROWS = Chunk((np.empty(0, np.int32),) * FIELDS, np.empty(0, np.int64), np.empty(0, np.int64))


@xs.kernel
def _any(column):  # type: ignore[no-untyped-def]
    return len(column) > 0


@xs.kernel
def _some(number):  # type: ignore[no-untyped-def]
    return number > 0
