"""Rows of a file into the query, at full speed or paced; rows that it refuses out of it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np

import xstream as xs
from linearroad.input import Chunk, Reject, RowReader
from linearroad.output.writers import RejectWriter
from linearroad.run.memory import ExpresswayCount
from linearroad.schema import FIELDS, REASONS, XWAY
from xstream.io.schedule import Schedule

__all__ = ["RAW", "Feed", "raw_rows"]

#: The raw rows: fifteen columns one after another (`INPUT_COLUMNS`), the line of each row, and the
#: second up to which all rows have been given (-1: not known).
RAW = xs.schema({"rows": xs.Segment(np.int32), "origin": xs.Segment(np.int64), "upto": int})

_Timed = tuple[int, Chunk, bool]
_NOTHING = -1


class Feed:
    """A file as the query takes it, and what becomes of rows that it refuses."""

    def __init__(
        self,
        reader: RowReader,
        number: int,
        schedule: Schedule,
        rejects: RejectWriter,
        manager: xs.MemoryManager,
    ) -> None:
        self.reader, self.rejects, self.schedule = reader, rejects, schedule
        reader.on_reject = partial(rejects.write, file_name=reader.name)
        self.number = number  # of the file among those of the input
        self.manager = manager  # of the query: rows are copied once
        self.place = schedule.join()
        self._expressways = ExpresswayCount()
        self.rows = 0
        self.second = -1  # of the stream, that was given last
        self.implausible = 0
        self.lag_s = self.worst_lag_s = 0.0
        self.idle_s = 0.0  # until the next rows

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """Raw rows (`RAW`). A stream that is stopped ends with a whole second."""
        begin_s = int(self.schedule.time.begin_s)
        rows = _since(self.reader.chunks(begin_s), begin_s)
        chunks = _primed(_by_second(rows) if self.schedule.is_paced else _by_chunk(rows))
        yield self._tuple(_NO_ROWS, _NOTHING)  # time starts when all files have their first rows
        self.schedule.start()
        try:
            yield from self._paced(chunks, begin_s) if self.schedule.is_paced else self._all(chunks)
        finally:
            self.schedule.leave(self.place)

    def _all(self, chunks: Iterator[_Timed]) -> Iterator[tuple[Any, ...]]:
        """Rows as they come; the last second of what was given stays open until the next rows."""
        for second, chunk, _ in chunks:
            yield from self._turn(second)
            limit_s = self.schedule.begin(second, int(chunk.times[-1]))
            if second >= limit_s:
                break
            yield self._tuple(_before(chunk, limit_s), _NOTHING)
        yield self._tuple(_NO_ROWS, self.second)

    def _paced(self, chunks: Iterator[_Timed], begin_s: int) -> Iterator[tuple[Any, ...]]:
        """Every second at its time, those without rows included, until all files have ended."""
        second = begin_s - 1
        for time, chunk, whole in chunks:
            while second < time - 1:
                second += 1
                if not (yield from self._due(second, time)):
                    return
                yield self._tuple(_NO_ROWS, second)
            if time > second and not (yield from self._due(time, time)):
                return
            yield self._tuple(chunk, time if whole else _NOTHING)
            second = time
        self.schedule.leave(self.place)
        while self.schedule.others_go_on():
            second += 1
            if second >= self.schedule.limit_s:
                return
            yield from self._wait(second, second)
            if self.schedule.begin(second, _NOTHING) <= second:
                return
            yield self._tuple(_NO_ROWS, second)

    def _due(self, second: int, next_rows_s: int) -> Generator[tuple[Any, ...], None, bool]:
        """Wait for a second in turn; returns whether the stream goes so far."""
        yield from self._turn(second)
        if second >= self.schedule.limit_s:
            return False
        yield from self._wait(second, next_rows_s)
        return self.schedule.begin(second, second) > second

    def _turn(self, second: int) -> Iterator[tuple[Any, ...]]:
        """Give nothing until this file's rows are next."""
        while not self.schedule.may_go(self.place, second):
            yield self._tuple(_NO_ROWS, _NOTHING)

    def _wait(self, second: int, next_rows_s: int) -> Iterator[tuple[Any, ...]]:
        """Give nothing until it is time; falling behind is measured, never hidden."""
        self.lag_s = self.schedule.lag_s(second)
        self.worst_lag_s = max(self.worst_lag_s, self.lag_s)
        self.idle_s = self.schedule.idle_s(next_rows_s)
        while not self.schedule.wait_a_little(second):
            self.idle_s = self.schedule.idle_s(next_rows_s)
            yield self._tuple(_NO_ROWS, _NOTHING)

    def _tuple(self, chunk: Chunk, upto: int) -> tuple[Any, ...]:
        self.rows += len(chunk)
        if len(chunk):
            self._expressways.add(chunk.columns[XWAY])
            self.second = int(chunk.times[-1])
        return raw_rows(chunk, upto, self.manager)

    def end_rejects_in_sinks(self, checked: xs.Stream, reported: xs.Stream) -> None:
        """Connect what the query refuses and counts."""
        for stream in (checked, reported):
            stream.select("reject").filter(_any).sink(self._take_rejects)
        reported.select("implausible").filter(_some).sink(self._take_implausible)

    def _take_rejects(self, rejects: xs.SigSeg) -> None:
        for line, reason in np.asarray(rejects).tolist():
            reject = Reject(line, REASONS[reason], self.reader.row(line))
            self.rejects.write(reject, self.reader.name)

    def _take_implausible(self, speeds: int) -> None:
        self.implausible += speeds


def raw_rows(chunk: Chunk, upto: int, manager: xs.MemoryManager) -> tuple[Any, ...]:
    """A chunk as the query takes it (`RAW`)."""
    with xs.SigSeg.build(FIELDS * len(chunk), np.int32, memory=manager) as buffer:
        np.concatenate(chunk.columns, out=buffer.array)
    return buffer.segment, xs.SigSeg(chunk.origins, memory=manager), upto


_NO_ROWS = Chunk((np.empty(0, np.int32),) * FIELDS, np.empty(0, np.int64), np.empty(0, np.int64))


def _primed(chunks: Iterator[_Timed]) -> Iterator[_Timed]:
    """The same chunks, the first of them read already, and what that takes compiled and loaded."""
    first = next(chunks, None)
    return iter(()) if first is None else chain((first,), chunks)


def _by_chunk(chunks: Iterator[Chunk]) -> Iterator[_Timed]:
    """Rows as they come, and the second that each chunk begins in."""
    return ((int(chunk.times[0]), chunk, False) for chunk in chunks)


def _before(chunk: Chunk, limit_s: int) -> Chunk:
    """The rows of a chunk before a second."""
    if chunk.times[-1] < limit_s:
        return chunk
    return chunk.part(0, int(np.searchsorted(chunk.times, limit_s)))


def _since(chunks: Iterator[Chunk], begin_s: int) -> Iterator[Chunk]:
    """The rows from a second on."""
    for chunk in chunks:
        if chunk.times[0] >= begin_s:
            yield chunk
        elif chunk.times[-1] >= begin_s:
            yield chunk.part(int(np.searchsorted(chunk.times, begin_s)), len(chunk))


def _by_second(chunks: Iterator[Chunk]) -> Iterator[_Timed]:
    """Rows cut where the second changes; and whether that is all of it."""
    held: tuple[int, Chunk] | None = None
    for chunk in chunks:
        cuts = [0, *(np.flatnonzero(np.diff(chunk.times)) + 1).tolist(), len(chunk)]
        for begin, end in pairwise(cuts):
            second = int(chunk.times[begin])
            if held is not None:
                yield *held, second != held[0]
            held = second, chunk.part(begin, end)
    if held is not None:
        yield *held, True


@xs.kernel
def _any(column):  # type: ignore[no-untyped-def]
    return len(column) > 0


@xs.kernel
def _some(number):  # type: ignore[no-untyped-def]
    return number > 0
