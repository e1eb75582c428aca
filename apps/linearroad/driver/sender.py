"""Sends rows at their times and measures how late they are."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from linearroad.driver.traffic import Second, behind, copied
from linearroad.run.copies import Copy
from linearroad.schema import REPORTS, TYPE
from linearroad.wire.connection import SLICE_S, Connection
from linearroad.wire.format import Block, Wire, mark
from xstream.console.stop import Stop
from xstream.io.clock import StreamTime

__all__ = ["Progress", "Sender"]

BEHIND_S = 1.0  # seconds from which on rows count as late


@dataclass
class Progress:
    """How far the rows are, and how late."""

    rows: int = 0
    reports: int = 0
    #: The last second whose rows have all been sent.
    second: int = -1
    #: How late the rows of that second were sent to their last byte, in stream seconds; the worst
    #: of all seconds, and which second that was.
    lag_s: float = 0.0
    worst_lag_s: float = 0.0
    worst_second: int = -1
    #: Seconds in which the system accepted no bytes.
    blocked_s: float = 0.0
    #: The longest that the driver itself took for the rows of a second, in seconds.
    own_s: float = 0.0
    #: Seconds in which there was no connection.
    away_s: float = 0.0
    #: Seconds until the next rows.
    idle_s: float = 0.0

    def sentence(self, speed: float) -> str | None:
        """What held up the rows; None if nothing did."""
        if self.worst_lag_s < BEHIND_S * max(speed, 1.0):
            return None
        told = (
            f"the rows of second {self.worst_second:,} were sent {self.worst_lag_s:.1f} stream "
            "seconds late"
        )
        if self.away_s * speed >= self.worst_lag_s / 2:
            return f"the system was away for {self.away_s:.1f} s: {told}"
        if self.blocked_s * speed < self.worst_lag_s / 2:
            return (
                f"the driver itself was too slow: {told}, and it took up to {self.own_s:.2f} s of "
                "its own for the rows of one second"
            )
        return (
            f"the system fell behind and TCP pushed back: {told}, and the system accepted no bytes "
            f"for {self.blocked_s:.1f} s in all"
        )


class _Start(NamedTuple):
    """A second that was begun, and the rows and reports before it."""

    second: int
    rows: int
    reports: int


class Sender:
    """Sends the seconds of a stream over a connection."""

    def __init__(
        self, connection: Connection, wire: Wire, stream: StreamTime, copies: Sequence[Copy],
        marks: bool,
    ) -> None:  # fmt: skip
        self._connection, self._wire, self._stream = connection, wire, stream
        self._copies, self._marks = copies, marks
        self._encode = wire.row_encoder()
        self._starts: list[_Start] = []
        self._skipped = 0  # rows of the next second that the system has already
        #: Called with the rows of a second before they are sent.
        self.before: Callable[[Block], None] = lambda rows: None
        self.progress = Progress()

    def warm_up(self, rows: Block) -> None:
        """Compile what encodes rows, before the time starts."""
        encode = self._wire.row_encoder()
        for block in copied(rows, self._copies[:2]):
            list(encode(block))

    def go_on(self, connection: Connection, rows: int) -> int:
        """Go on behind so many rows; returns the second to begin with."""
        self._connection, self._encode = connection, self._wire.row_encoder()
        place = bisect_right(self._starts, rows, key=lambda start: start.rows) - 1
        if place < 0:
            return 0
        start, progress = self._starts[place], self.progress
        del self._starts[place:]
        self._skipped = rows - start.rows
        progress.rows, progress.reports = start.rows, start.reports
        return start.second

    def run(
        self, seconds: Iterable[Second], stop: Stop, ended: Callable[[], bool],
        look: Callable[[], None],
    ) -> bool:  # fmt: skip
        """Send seconds, unless `stop` is set or the system ends; returns whether all were sent."""
        for second in seconds:
            if not self._wait(second.second, stop, ended, look):
                return False
            self._send(second)
            look()
        return True

    def _wait(
        self, second: int, stop: Stop, ended: Callable[[], bool], look: Callable[[], None]
    ) -> bool:
        """Wait for a second of the stream; returns whether to send its rows."""
        while not stop.is_set() and not ended():
            left_s = self.progress.idle_s = max(self._stream.due_in_s(second), 0.0)
            if left_s <= 0:
                return True
            self._stream.pause(min(left_s, SLICE_S), stop)
            look()
        return False

    def _send(self, second: Second) -> None:
        progress, connection = self.progress, self._connection
        began, blocked_s = time.perf_counter(), connection.blocked_s
        reports = int((second.rows[TYPE] == REPORTS).sum())
        self._starts.append(_Start(second.second, progress.rows, progress.reports))
        progress.rows += self._skipped
        skipped, self._skipped = self._skipped, 0
        for block in behind(copied(second.rows, self._copies), skipped):
            self.before(block)
            for buffer in self._encode(block):
                connection.send(buffer)
            progress.rows += block.shape[1]
        if self._marks:
            for buffer in self._encode(mark(second.second)):
                connection.send(buffer)
        progress.reports += len(self._copies) * reports
        progress.second = second.second
        progress.blocked_s += connection.blocked_s - blocked_s
        own_s = time.perf_counter() - began - (connection.blocked_s - blocked_s)
        progress.own_s = max(progress.own_s, own_s)
        progress.lag_s = max(self._stream.now_s() - second.second, 0.0)
        if progress.lag_s > progress.worst_lag_s:
            progress.worst_lag_s, progress.worst_second = progress.lag_s, second.second

    def end(self) -> None:
        """Mark the end of the stream."""
        self._connection.send(self._wire.last_rows())
        self._connection.end_sending()
