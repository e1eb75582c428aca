"""Rows into the query, at full speed or paced by the clock; rejects out of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np

import xstream as xs
from linearroad.queries.interrupts import Stop
from linearroad.queries.layout import REASONS
from linearroad.queries.operators.text import FIELDS
from linearroad.queries.reading import FILE_SHIFT, Chunk, Reject, RowReader, merged
from linearroad.queries.writing import RejectWriter

__all__ = ["Backlog", "Clock", "Convoy", "RowFeed", "raw_rows"]

FOR_EVER = 2**40
SLACK_S = 60  # of the stream, that feeds may be apart at full speed
LOOK_EVERY_S = 0.2  # while the next rows are waited for: the run shows where it is


class Clock:
    """Stream time: `speed` times as fast as the wall clock, or as fast as the rows come.

    It starts when all engines have their first rows, and everything is loaded and compiled. `stop`
    ends the stream early: no more seconds begin, and nobody waits for one.
    """

    def __init__(self, speed: float | None, begin_s: int = 0, engines: int = 1) -> None:
        self.speed = speed
        self.begin_s = begin_s  # the second of the stream that it starts with
        self.stop = Stop()
        self.cut = threading.Event()  # what is on its way is left there
        self._ready = threading.Barrier(engines, self._begin)
        self._began: float | None = None

    def _begin(self) -> None:
        self._began = time.perf_counter()

    def start(self) -> None:
        """The first second of the stream is when the last engine has said this."""
        with suppress(threading.BrokenBarrierError):  # another engine has failed: the run ends
            self._ready.wait()

    def give_up(self) -> None:
        """An engine will never start, and nobody shall wait for it."""
        self.stop.set()
        self._ready.abort()

    def wall_seconds(self) -> float:
        """Since the start."""
        return 0.0 if self._began is None else time.perf_counter() - self._began

    def due_in_s(self, second: int) -> float:
        """How long until a second of the stream; negative if it is late."""
        if self.speed is None:
            return 0.0
        return (second - self.begin_s) / self.speed - self.wall_seconds()

    def lag_s(self, second: int) -> float:
        """How late a second is, in stream seconds."""
        return max(-self.due_in_s(second) * (self.speed or 0.0), 0.0)

    def emit_ms(self, second: int) -> int:
        """When the answers of a second leave the engine, in stream milliseconds."""
        if self.speed is None:
            return 1000 * second
        return int(1000 * (self.begin_s + self.wall_seconds() * self.speed))


class Convoy:
    """Feeds of one engine that go through the stream side by side.

    The engine asks each of them in turn. Who is ahead of the slowest gives nothing for that turn,
    so that no one waits for the clock, or fills memory, while another has rows to work on.
    """

    def __init__(self, clock: Clock) -> None:
        self.slack_s = SLACK_S if clock.speed is None else 0
        self._clock, self._started = clock, False
        self.idle_s = 0.0  # how long until the next rows of all its feeds
        self._due: list[int] = []
        self._told: list[int] = []

    def start(self) -> None:
        """Every feed has its first rows: the clock may start."""
        if not self._started:
            self._started = True
            self._clock.start()

    def join(self) -> int:
        """A feed's place in the convoy."""
        self._due.append(-1)
        self._told.append(-1)
        return len(self._due) - 1

    def may_go(self, place: int, second: int) -> bool:
        """Whether a feed whose next rows are of `second` may give them now."""
        self._due[place] = second
        return second <= min(self._due) + self.slack_s

    def tell(self, place: int, upto: int) -> None:
        """With what a feed gives next, all its seconds up to this one have gone into the engine."""
        self._told[place] = upto

    @property
    def told(self) -> int:
        """The second up to which all feeds have given everything."""
        return min(self._told)

    def leave(self, place: int) -> None:
        """Nobody waits for this feed any more."""
        self._due[place] = FOR_EVER


class Backlog:
    """Batches of answers that a worker has handed over and nobody has taken: what bounds memory.

    A worker that is far ahead waits, unless it is the one that is being waited for.
    """

    MOST = 64

    def __init__(self) -> None:
        self._batches = 0
        self._wanted = False
        self._changed = threading.Condition()

    def add(self, batches: int) -> None:
        """Some more, or fewer."""
        with self._changed:
            self._batches += batches
            self._changed.notify_all()

    @contextmanager
    def wanted(self) -> Iterator[None]:
        """Somebody waits for this worker."""
        with self._changed:
            self._wanted = True
            self._changed.notify_all()
        try:
            yield
        finally:
            self._wanted = False

    def wait(self, stop: Stop) -> None:
        """Until there is room, or need."""
        with self._changed:
            while self._batches > self.MOST and not self._wanted and not stop.is_set():
                self._changed.wait(0.1)


class RowFeed:
    """Some files as the query takes them, and what becomes of rows that it refuses."""

    def __init__(
        self,
        readers: list[RowReader],
        rejects: RejectWriter | None,
        clock: Clock,
        minutes: int | None,
        convoy: Convoy,
        backlog: Backlog,
        manager: xs.MemoryManager,
        number: int = 0,
    ) -> None:
        self.readers, self.rejects, self.clock = readers, rejects, clock
        if rejects is not None:
            for reader in readers:
                reader.on_reject = partial(rejects.write, file_name=reader.name)
        self.number = number  # of the file among those of the input
        self.manager = manager  # of the engine that it feeds: rows are copied once
        self.limit = FOR_EVER if minutes is None else 60 * minutes
        self.convoy, self.place, self.backlog = convoy, convoy.join(), backlog
        #: Told, in a paced stream, up to which second nothing more will come.
        self.on_nothing_until: Callable[[int], None] | None = None
        self.rows = 0
        self.second = -1  # of the stream, that was given last
        self.implausible = 0
        self.lag_s = self.worst_lag_s = 0.0

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """Raw rows (`network.RAW`). A stream that is stopped ends with its last whole second."""
        rows = _since(merged(self.readers, self.clock.begin_s), self.clock.begin_s)
        paced = self.clock.speed is not None
        chunks = _primed(_by_second(rows) if paced else _by_chunk(rows))
        nothing = self._tuple(_NO_ROWS, False)
        yield nothing  # all feeds of the engine get their first rows before the clock starts
        self.convoy.start()
        for second, chunk, whole in chunks:
            if paced:
                self.convoy.tell(self.place, second - 1)
                if self.on_nothing_until is not None:
                    self.on_nothing_until(second - 1)
            while not self.convoy.may_go(self.place, second):
                yield nothing
            while second < self.limit and not self._is_time(second):
                yield nothing
            if self.clock.stop.is_set():
                self.convoy.leave(self.place)
                return
            if second >= self.limit:
                break
            if not paced:
                chunk = _before(chunk, self.limit)
            # What is not known to be whole stays open in the engine until more rows come.
            self.convoy.tell(self.place, int(chunk.times[-1]) - (not whole))
            yield self._tuple(chunk, whole)
        self.convoy.leave(self.place)
        self.convoy.tell(self.place, FOR_EVER)
        yield self._tuple(_NO_ROWS, True)
        if self.on_nothing_until is not None:  # others may have more, and need not wait for this
            self.on_nothing_until(FOR_EVER)

    def _is_time(self, second: int) -> bool:
        """Wait a little; whether it is time now. Falling behind is measured, never hidden."""
        stop = self.clock.stop
        self.backlog.wait(stop)
        self.lag_s = self.clock.lag_s(second)
        self.worst_lag_s = max(self.worst_lag_s, self.lag_s)
        self.convoy.idle_s = max(self.clock.due_in_s(second), 0.0)
        if self.convoy.idle_s > LOOK_EVERY_S:
            stop.wait(LOOK_EVERY_S)
            return stop.is_set()
        stop.wait(self.convoy.idle_s)
        self.convoy.idle_s = 0.0
        return True

    def _tuple(self, chunk: Chunk, whole: bool) -> tuple[Any, ...]:
        self.rows += len(chunk)
        if len(chunk):
            self.second = int(chunk.times[-1])
        return raw_rows(chunk, whole, self.manager)

    def take_rejects(self, rejects: xs.SigSeg) -> None:
        """Rows that the query refused."""
        for origin, reason in np.asarray(rejects).reshape(-1, 2).tolist():
            reader = self.readers[origin >> FILE_SHIFT]
            line = origin & ((1 << FILE_SHIFT) - 1)
            if self.rejects is not None:
                self.rejects.write(Reject(line, REASONS[reason], reader.row(line)), reader.name)

    def take_implausible(self, speeds: int) -> None:
        """So many speeds that no car drives at."""
        self.implausible += speeds

    def end_rejects_in_sinks(self, streams: tuple[xs.Stream, ...]) -> None:
        """Connect what the query refuses and counts."""
        for stream in streams:
            stream.select("reject").filter(_any).sink(self.take_rejects)
        streams[1].select("implausible").filter(_some).sink(self.take_implausible)


def raw_rows(chunk: Chunk, whole: bool, manager: xs.MemoryManager) -> tuple[Any, ...]:
    """A chunk as the query takes it (`network.RAW`)."""
    with xs.SigSeg.build(FIELDS * len(chunk), np.int32, memory=manager) as buffer:
        np.concatenate(chunk.columns, out=buffer.array)
    return buffer.segment, xs.SigSeg(chunk.origins, memory=manager), whole


_NO_ROWS = Chunk((np.empty(0, np.int32),) * FIELDS, np.empty(0, np.int64), np.empty(0, np.int64))


_Timed = tuple[int, Chunk, bool]


def _primed(chunks: Iterator[_Timed]) -> Iterator[_Timed]:
    """The same chunks, the first of them read already, and what that takes compiled and loaded."""
    first = next(chunks, None)
    return iter(()) if first is None else chain((first,), chunks)


def _by_chunk(chunks: Iterator[Chunk]) -> Iterator[_Timed]:
    """Rows as they come, and the second that each chunk begins in."""
    return ((int(chunk.times[0]), chunk, False) for chunk in chunks)


def _before(chunk: Chunk, limit: int) -> Chunk:
    """The rows of a chunk before a second."""
    if chunk.times[-1] < limit:
        return chunk
    return chunk.part(0, int(np.searchsorted(chunk.times, limit)))


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
