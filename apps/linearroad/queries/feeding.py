"""Rows into the query, at full speed or paced by the clock; rejects out of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

import xstream as xs
from linearroad.queries.layout import REASONS
from linearroad.queries.operators.text import FIELDS
from linearroad.queries.reading import FILE_SHIFT, Chunk, Reject, RowReader, merged, seconds
from linearroad.queries.writing import RejectWriter

__all__ = ["Clock", "RowFeed"]


class Clock:
    """Stream time: `speed` times as fast as the wall clock, or as fast as the rows come.

    It starts with the first rows, when everything is loaded and compiled. `stop` ends the stream
    early: no more seconds begin, and nobody waits for one.
    """

    def __init__(self, speed: float | None) -> None:
        self.speed = speed
        self.stop = threading.Event()
        self._starting = threading.Lock()
        self._began: float | None = None

    def start(self) -> None:
        """Second 0 of the stream is now, unless it has been."""
        with self._starting:
            if self._began is None:
                self._began = time.perf_counter()

    def wall_seconds(self) -> float:
        """Since the start."""
        return 0.0 if self._began is None else time.perf_counter() - self._began

    def wait_for(self, second: int) -> float:
        """Wait for a second of the stream; how late it is, in stream seconds."""
        if self.speed is None:
            return 0.0
        late = self.wall_seconds() - second / self.speed
        if late < 0:
            self.stop.wait(-late)
        return late * self.speed

    def emit_ms(self, second: int) -> int:
        """When the answers of a second leave the engine, in stream milliseconds."""
        if self.speed is None:
            return 1000 * second
        return int(1000 * self.wall_seconds() * self.speed)


class RowFeed:
    """Some files as the query takes them, and what becomes of rows that it refuses."""

    def __init__(
        self, readers: list[RowReader], rejects: RejectWriter, clock: Clock, minutes: int | None
    ) -> None:
        self.readers, self.rejects, self.clock = readers, rejects, clock
        self.limit = None if minutes is None else 60 * minutes
        self.rows = 0
        self.implausible = 0
        self.lag_s = self.worst_lag_s = 0.0

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """Raw rows (`network.RAW`). A stream that is stopped ends with its last whole second."""
        rows = _primed(merged(self.readers))
        self.clock.start()
        chunks = ((chunk, False) for chunk in rows)
        for chunk, whole in chunks if self.clock.speed is None else self._paced(rows):
            if self.clock.stop.is_set():
                return
            if self.limit is not None:
                late = np.flatnonzero(chunk.time >= self.limit)
                if len(late):
                    yield self._tuple(chunk.part(0, int(late[0])), True)
                    return
            yield self._tuple(chunk, whole)
        yield self._tuple(Chunk((np.empty(0, np.int32),) * FIELDS, np.empty(0, np.int64)), True)

    def _tuple(self, chunk: Chunk, whole: bool) -> tuple[Any, ...]:
        for reader in self.readers:
            for reject in reader.unparsed:
                self.rejects.write(reject, reader.name)
        self.rows += len(chunk)
        return (*(xs.SigSeg(column) for column in chunk.columns), xs.SigSeg(chunk.origins), whole)

    def _paced(self, rows: Iterator[Chunk]) -> Iterator[tuple[Chunk, bool]]:
        """Each second's rows at their time; falling behind is measured, never hidden."""
        waiting: list[Chunk] = []
        for chunk in seconds(rows):
            if waiting and chunk.time[0] != waiting[0].time[0]:
                yield from self._released(waiting)
                waiting = []
            waiting.append(chunk)
        yield from self._released(waiting)

    def _released(self, waiting: list[Chunk]) -> Iterator[tuple[Chunk, bool]]:
        if waiting:
            self.lag_s = max(self.clock.wait_for(int(waiting[0].time[0])), 0.0)
            self.worst_lag_s = max(self.worst_lag_s, self.lag_s)
        for i, chunk in enumerate(waiting):
            yield chunk, i == len(waiting) - 1

    def take_rejects(self, rejects: xs.SigSeg) -> None:
        """Rows that the query refused."""
        for origin, reason in np.asarray(rejects).reshape(-1, 2).tolist():
            reader = self.readers[origin >> FILE_SHIFT]
            line = origin & ((1 << FILE_SHIFT) - 1)
            self.rejects.write(Reject(line, REASONS[reason], reader.row(line)), reader.name)

    def take_implausible(self, speeds: int) -> None:
        """So many speeds that no car drives at."""
        self.implausible += speeds

    def end_rejects_in_sinks(self, streams: tuple[xs.Stream, ...]) -> None:
        """Connect what the query refuses and counts."""
        for stream in streams:
            stream.select("reject").filter(_any).sink(self.take_rejects)
        streams[1].select("implausible").filter(_some).sink(self.take_implausible)


def _primed(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The same chunks, the first of them read already."""
    first = next(chunks, None)
    return iter(()) if first is None else chain((first,), chunks)


@xs.kernel
def _any(column):  # type: ignore[no-untyped-def]
    return len(column) > 0


@xs.kernel
def _some(number):  # type: ignore[no-untyped-def]
    return number > 0
