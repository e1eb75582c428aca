"""When files may give their rows: side by side, at the stream's pace, up to a common end."""

from __future__ import annotations

import threading
from contextlib import suppress

import xstream as xs
from linearroad.run.interrupts import Stop

__all__ = ["FOR_EVER", "Schedule"]

FOR_EVER = 2**40
SLACK_S = 60  # of the stream, that files may be apart at full speed
PATIENCE_S = 0.005  # between two looks at other engines
LOOK_EVERY_S = 0.2  # while the next rows are waited for: the run shows where it is


class Schedule:
    """All files of a run, in one or several engines, and the time of the stream.

    An engine asks its files in turn. One that is ahead of the slowest gives nothing for that turn,
    so that nobody waits for the clock, or fills memory, while another has rows to work on. Setting
    `stop` ends the stream: all files go on to the furthest second that any of them has begun, and
    end there, so that everything is complete up to one second.
    """

    def __init__(self, time: xs.io.StreamTime, engines: int, limit_s: int = FOR_EVER) -> None:
        self.time, self.stop = time, Stop()
        self.cut = threading.Event()  # what is on its way is left there
        self.slack_s = SLACK_S if time.speed is None else 0
        #: The second that the stream ends before.
        self.limit_s = limit_s
        self._given_s = -1  # the furthest second that rows were given of
        self._engines: list[int] = []  # of each file
        self._due: list[int] = []  # the second of its next rows
        self._changed = threading.Condition()
        self._ready = threading.Barrier(engines, time.start)
        self._started: set[int] = set()

    @property
    def is_paced(self) -> bool:
        """Whether seconds have a time of the clock."""
        return self.time.speed is not None

    # -- beginning ---------------------------------------------------------------------------

    def join(self, engine: int) -> int:
        """Add a file that an engine reads; its place."""
        self._engines.append(engine)
        self._due.append(-1)
        return len(self._due) - 1

    def start(self, place: int) -> None:
        """All files of an engine have their first rows. Time starts when all engines say so."""
        engine = self._engines[place]
        if engine not in self._started:
            self._started.add(engine)
            with suppress(threading.BrokenBarrierError):  # another engine has failed
                self._ready.wait()

    def give_up(self) -> None:
        """An engine will never start or go on, and nobody shall wait for it."""
        self.stop.set()
        self._ready.abort()

    # -- going on ----------------------------------------------------------------------------

    def may_go(self, place: int, second: int) -> bool:
        """Whether a file whose next rows are of `second` may give them now."""
        with self._changed:
            self._due[place] = second
            mine = self._engines[place]
            own = [due for due, one in zip(self._due, self._engines, strict=True) if one == mine]
            if second > min(own) + self.slack_s:
                return False
            if self.is_paced or self.stop.is_set() or second <= min(self._due) + self.slack_s:
                self._changed.notify_all()
                return True
            self._changed.wait(PATIENCE_S)
            return False

    def begin(self, first: int, last: int) -> int:
        """Rows from one second to another are about to be given: the second to stop before."""
        with self._changed:
            if self.stop.is_set():
                self.limit_s = min(self.limit_s, self._given_s + 1)
            if first < self.limit_s:
                self._given_s = max(self._given_s, min(last, self.limit_s - 1))
            return self.limit_s

    def leave(self, place: int) -> None:
        """Say that nobody needs to wait for this file any more."""
        with self._changed:
            self._due[place] = FOR_EVER
            self._changed.notify_all()

    def others_go_on(self) -> bool:
        """Whether any file has not ended."""
        with self._changed:
            return min(self._due) < FOR_EVER

    def wait_a_little(self, second: int) -> bool:
        """Wait for a second of the stream, but not for long; whether it is time now."""
        idle_s = self.idle_s(second)
        self.time.pause(min(idle_s, LOOK_EVERY_S), self.stop)
        return idle_s <= LOOK_EVERY_S or self.stop.is_set()

    def idle_s(self, second: int) -> float:
        """How long until a second of the stream."""
        return max(self.time.due_in_s(second), 0.0)

    def lag_s(self, second: int) -> float:
        """How late a second is, in stream seconds."""
        return max(-self.time.due_in_s(second), 0.0) * (self.time.speed or 0.0)

    def emit_ms(self, second: int) -> int:
        """When the answers of a second leave the engine, in stream milliseconds."""
        return int(1000 * self.time.now_s()) if self.is_paced else 1000 * second
