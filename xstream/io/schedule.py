"""When sources may give their tuples: side by side, at the stream's pace, to a common end."""

from __future__ import annotations

import threading
from contextlib import suppress

from xstream.console.stop import Stop
from xstream.io.clock import StreamTime

__all__ = ["NO_LIMIT", "Schedule"]

NO_LIMIT = 2**40
SLACK_S = 60  # stream seconds that sources may be apart at full speed
PATIENCE_S = 0.005  # between two looks at the sources of other engines
LOOK_EVERY_S = 0.2  # while waiting for the clock, so that the run can show its progress


class Schedule:
    """All sources of a run, in one or several engines, and the time of the stream.

    An engine asks its sources in turn. A source that is ahead of the slowest one gives nothing in
    that turn, so that no engine waits for the clock, or fills memory, while another source has
    tuples. Setting `stop` ends the stream: all sources go on to the latest second that any of them
    has begun and end there, so that the results are complete up to that second.
    """

    def __init__(self, time: StreamTime, engines: int, limit_s: int = NO_LIMIT) -> None:
        self.time, self.stop = time, Stop()
        self.cut = threading.Event()  # tuples in flight are dropped
        self.slack_s = SLACK_S if time.speed is None else 0
        #: The stream ends before this second.
        self.limit_s = limit_s
        self._given_s = -1  # the latest second of which tuples were given
        self._engines: list[int] = []  # of each source
        self._due: list[int] = []  # the second of its next tuples
        self._changed = threading.Condition()
        self._ready = threading.Barrier(engines, time.start)
        self._started: set[int] = set()

    @property
    def is_paced(self) -> bool:
        """Whether seconds have a time of the clock."""
        return self.time.speed is not None

    # -- beginning ---------------------------------------------------------------------------

    def join(self, engine: int) -> int:
        """Add a source of an engine; returns its number."""
        self._engines.append(engine)
        self._due.append(-1)
        return len(self._due) - 1

    def start(self, place: int) -> None:
        """The sources of an engine have their first tuples. Time starts when those of all have."""
        engine = self._engines[place]
        if engine not in self._started:
            self._started.add(engine)
            with suppress(threading.BrokenBarrierError):  # another engine has failed
                self._ready.wait()

    def give_up(self) -> None:
        """An engine has failed: nothing waits for it any more."""
        self.stop.set()
        self._ready.abort()

    # -- going on ----------------------------------------------------------------------------

    def may_go(self, place: int, second: int) -> bool:
        """Whether a source whose next tuples are of `second` may give them now."""
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
        """Tuples from one second to another are next; returns the second to stop before."""
        with self._changed:
            if self.stop.is_set():
                self.limit_s = min(self.limit_s, self._given_s + 1)
            if first < self.limit_s:
                self._given_s = max(self._given_s, min(last, self.limit_s - 1))
            return self.limit_s

    def leave(self, place: int) -> None:
        """A source has ended: the others no longer wait for it."""
        with self._changed:
            self._due[place] = NO_LIMIT
            self._changed.notify_all()

    def others_go_on(self) -> bool:
        """Whether any source has not ended."""
        with self._changed:
            return min(self._due) < NO_LIMIT

    def wait_a_little(self, second: int) -> bool:
        """Wait a little for a second of the stream; returns whether it is due now."""
        idle_s = self.idle_s(second)
        self.time.pause(min(idle_s, LOOK_EVERY_S), self.stop)
        return idle_s <= LOOK_EVERY_S or self.stop.is_set()

    def idle_s(self, second: int) -> float:
        """How long it is until a second of the stream, in wall-clock seconds."""
        return max(self.time.due_in_s(second), 0.0)

    def lag_s(self, second: int) -> float:
        """How late a second is, in stream seconds."""
        return max(-self.time.due_in_s(second), 0.0) * (self.time.speed or 0.0)

    def emit_ms(self, second: int) -> int:
        """When the results of a second leave the engine, in stream milliseconds."""
        return int(1000 * self.time.now_s()) if self.is_paced else 1000 * second
