"""Rows of several sources, given in turn and, in a paced run, when each second is due."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from itertools import chain, pairwise
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from xstream.io.schedule import Schedule

__all__ = ["UNKNOWN", "PacedRows", "TimedRows"]

#: The rows of the first chunk; the next ones grow. Operators are soon measured for several threads.
FIRST_ROWS = 1024
MOST_ROWS = 1 << 40  # of a chunk: as many as are read at a time
UNKNOWN = -1  # it is not known up to which second all rows have been given


class TimedRows(Protocol):
    """Rows with the second of the stream that each comes in; seconds do not decrease."""

    @property
    def times(self) -> NDArray[np.int64]:
        """The second of each row."""

    def __len__(self) -> int: ...

    def part(self, begin: int, end: int) -> Self:
        """Some of the rows."""


Rows = TypeVar("Rows", bound=TimedRows)
_Timed = tuple[int, Rows, bool]
_Given = tuple[Rows | None, int]


class PacedRows(Generic[Rows]):
    """Gives the rows of one source when its schedule lets them in, and measures how late they are.

    All sources of a run share the schedule. What is given are pairs: rows, or None where there are
    none now, and the second up to which all rows have been given. At full speed rows are given up
    to `most_rows` at a time.
    """

    def __init__(self, schedule: Schedule, most_rows: int = MOST_ROWS) -> None:
        self.schedule, self._most_rows = schedule, most_rows
        self._place = schedule.join()
        self.second = -1  # of the stream, of which rows were given last
        self.lag_s = self.worst_lag_s = 0.0
        self.idle_s = 0.0  # until the next rows
        self._reached: int | None = None  # the last second that was given, if paced
        self._closed = False  # the last second has been given as complete

    def save_state(self) -> dict[str, Any]:
        """What another run goes on from."""
        return {
            "second": self.second, "reached": self._reached, "closed": self._closed,
            "worst_lag_s": self.worst_lag_s,
        }  # fmt: skip

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Go on from there; the chunks begin after those that were given."""
        self.second, self._reached = int(saved["second"]), saved["reached"]
        self._closed, self.worst_lag_s = bool(saved["closed"]), float(saved["worst_lag_s"])

    def given(self, chunks: Iterator[Rows]) -> Iterator[_Given[Rows]]:
        """The rows of the chunks from the first second of the schedule on, which are not empty.

        A stream that is stopped ends with a whole second.
        """
        begin_s, paced = int(self.schedule.time.begin_s), self.schedule.is_paced
        rows = _since(chunks, begin_s)
        timed = _primed(_by_second(rows) if paced else _by_chunk(rows, self._most_rows))
        yield None, UNKNOWN  # time starts when all sources have their first rows
        self.schedule.start()
        try:
            for some, upto in self._paced(timed, begin_s) if paced else self._all(timed):
                if some is not None:
                    self.second = int(some.times[-1])
                yield some, upto
        finally:
            self.schedule.leave(self._place)

    def _all(self, chunks: Iterator[_Timed[Rows]]) -> Iterator[_Given[Rows]]:
        """Rows as they come; the last second of what was given stays open until the next rows."""
        for second, rows, _ in chunks:
            yield from self._turn(second)
            limit_s = self.schedule.begin(second, int(rows.times[-1]))
            if second >= limit_s:
                break
            yield _before(rows, limit_s), UNKNOWN
        if not self._closed:
            self._closed = True
            yield None, self.second

    def _paced(self, chunks: Iterator[_Timed[Rows]], begin_s: int) -> Iterator[_Given[Rows]]:
        """Every second at its time, those without rows included, until all sources have ended."""
        second = begin_s - 1 if self._reached is None else self._reached
        for time, rows, whole in chunks:
            while second < time - 1:
                second += 1
                if not (yield from self._due(second, time)):
                    return
                self._reached = second
                yield None, second
            if time > second and not (yield from self._due(time, time)):
                return
            self._reached = second = time
            yield rows, time if whole else UNKNOWN
        self.schedule.leave(self._place)
        while self.schedule.others_go_on():
            second += 1
            if second >= self.schedule.limit_s:
                return
            yield from self._wait(second, second)
            if self.schedule.begin(second, UNKNOWN) <= second:
                return
            self._reached = second
            yield None, second

    def _due(self, second: int, next_rows_s: int) -> Generator[_Given[Rows], None, bool]:
        """Wait for a second in turn; returns whether the stream goes so far."""
        yield from self._turn(second)
        if second >= self.schedule.limit_s:
            return False
        yield from self._wait(second, next_rows_s)
        return self.schedule.begin(second, second) > second

    def _turn(self, second: int) -> Iterator[_Given[Rows]]:
        """Give nothing until this source's rows are next."""
        while not self.schedule.may_go(self._place, second):
            yield None, UNKNOWN

    def _wait(self, second: int, next_rows_s: int) -> Iterator[_Given[Rows]]:
        """Give nothing until it is time; falling behind is measured, never hidden."""
        self.lag_s = self.schedule.lag_s(second)
        self.worst_lag_s = max(self.worst_lag_s, self.lag_s)
        self.idle_s = self.schedule.idle_s(next_rows_s)
        while not self.schedule.wait_a_little(second):
            self.idle_s = self.schedule.idle_s(next_rows_s)
            yield None, UNKNOWN


def _primed(chunks: Iterator[_Timed[Rows]]) -> Iterator[_Timed[Rows]]:
    """The same chunks, the first of them read already, and what that takes compiled and loaded."""
    first = next(chunks, None)
    return iter(()) if first is None else chain((first,), chunks)


def _by_chunk(chunks: Iterator[Rows], most_rows: int) -> Iterator[_Timed[Rows]]:
    """Rows as they come, and the second that each chunk begins in."""
    return ((int(rows.times[0]), rows, False) for rows in _growing(chunks, most_rows))


def _growing(chunks: Iterator[Rows], most_rows: int) -> Iterator[Rows]:
    """The same rows in chunks that begin small and double until they are as large as given."""
    most = min(FIRST_ROWS, most_rows)
    for rows in chunks:
        begin = 0
        while begin < len(rows):
            end = min(begin + most, len(rows))
            yield rows if end - begin == len(rows) else rows.part(begin, end)
            begin, most = end, min(2 * most, most_rows)


def _before(rows: Rows, limit_s: int) -> Rows:
    """The rows of a chunk before a second."""
    if rows.times[-1] < limit_s:
        return rows
    return rows.part(0, int(np.searchsorted(rows.times, limit_s)))


def _since(chunks: Iterator[Rows], begin_s: int) -> Iterator[Rows]:
    """The rows from a second on."""
    for rows in chunks:
        if rows.times[0] >= begin_s:
            yield rows
        elif rows.times[-1] >= begin_s:
            yield rows.part(int(np.searchsorted(rows.times, begin_s)), len(rows))


def _by_second(chunks: Iterator[Rows]) -> Iterator[_Timed[Rows]]:
    """Rows cut where the second changes; and whether that is all of it."""
    held: tuple[int, Rows] | None = None
    for rows in chunks:
        cuts = [0, *(np.flatnonzero(np.diff(rows.times)) + 1).tolist(), len(rows)]
        for begin, end in pairwise(cuts):
            second = int(rows.times[begin])
            if held is not None:
                yield *held, second != held[0]
            held = second, rows.part(begin, end)
    if held is not None:
        yield *held, True
