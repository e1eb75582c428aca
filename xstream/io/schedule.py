"""Decides when sources may emit: in step with each other, at the stream's pace, to a common end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from xstream.console.stop import Stop
from xstream.io.clock import StreamTime

__all__ = ["NO_LIMIT", "Schedule"]

NO_LIMIT = 2**40
SLACK_S = 60  # the largest distance between sources at full speed, in stream seconds
LOOK_EVERY_S = 0.2  # the longest wait for the clock, so that the run can show its progress


class Schedule:
    """All sources of a run and the time of the stream.

    The query asks its sources in turn, in one thread. A source that is ahead of the slowest one
    emits nothing in that turn, so the query does not wait for the clock, or fill memory, while
    another source has tuples. Setting `stop` ends the stream: all sources continue to the latest
    second that any of them has started and end there, so the results are complete up to that
    second.
    """

    def __init__(self, stream: StreamTime, limit_s: int = NO_LIMIT) -> None:
        self.time, self.stop = stream, Stop()
        self.cut = threading.Event()  # tuples in flight are dropped
        self.slack_s = SLACK_S if stream.speed is None else 0
        #: The stream ends before this second.
        self.limit_s = limit_s
        self._given_s = -1  # the latest second that has been emitted
        self._due: list[int] = []  # by source: the second of its next tuples
        self._started = False
        #: Waits for a start that this run has in common with others, and returns how many seconds
        #: ago it was.
        self.gate: Callable[[], float] | None = None
        self._earlier_s, self._left_at = 0.0, 0.0  # of the runs before this one

    @property
    def is_paced(self) -> bool:
        """Whether the stream is paced by the clock."""
        return self.time.speed is not None

    # -- start -------------------------------------------------------------------------------

    def join(self) -> int:
        """Add a source; returns its number."""
        self._due.append(-1)
        return len(self._due) - 1

    def start(self) -> None:
        """Start the time: all sources have their first tuples."""
        if self._started:
            return
        self._started = True
        # A paced stream does not wait for a run that recovers: what comes after that is late.
        away_s = max(time.time() - self._left_at, 0.0) if self._left_at and self.is_paced else 0.0
        if self.gate is not None and not self._left_at:
            away_s = self.gate()
        self.time.start(self._earlier_s + away_s)

    def save_state(self) -> dict[str, Any]:
        """What another run goes on from: the progress of all sources, and the time."""
        return {
            "due": list(self._due), "given_s": self._given_s, "wall_s": self.time.wall_s(),
            "left_at": time.time(),
        }  # fmt: skip

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._due[:] = [int(second) for second in saved["due"]]
        self._given_s = int(saved["given_s"])
        self._earlier_s, self._left_at = float(saved["wall_s"]), float(saved["left_at"])

    # -- progress ----------------------------------------------------------------------------

    def may_go(self, place: int, second: int) -> bool:
        """Whether a source whose next tuples are of `second` may emit them now."""
        self._due[place] = second
        return second <= min(self._due) + self.slack_s

    def begin(self, first: int, last: int) -> int:
        """Announce the next tuples, between two seconds; return the second to stop before."""
        if self.stop.is_set():
            self.limit_s = min(self.limit_s, self._given_s + 1)
        if first < self.limit_s:
            self._given_s = max(self._given_s, min(last, self.limit_s - 1))
        return self.limit_s

    def leave(self, place: int) -> None:
        """A source has ended: the others no longer wait for it."""
        self._due[place] = NO_LIMIT

    def others_go_on(self) -> bool:
        """Whether any source has not ended."""
        return min(self._due) < NO_LIMIT

    def wait_a_little(self, second: int) -> bool:
        """Wait a little for a second of the stream; returns whether it is due now."""
        idle_s = self.idle_s(second)
        self.time.pause(min(idle_s, LOOK_EVERY_S), self.stop)
        return idle_s <= LOOK_EVERY_S or self.stop.is_set()

    def idle_s(self, second: int) -> float:
        """The time until a second of the stream, in wall-clock seconds."""
        return max(self.time.due_in_s(second), 0.0)

    def lag_s(self, second: int) -> float:
        """How late a second is, in stream seconds."""
        return max(-self.time.due_in_s(second), 0.0) * (self.time.speed or 0.0)

    def emit_ms(self, second: int) -> int:
        """The time at which the results of a second leave the engine, in stream milliseconds."""
        return int(1000 * self.time.now_s()) if self.is_paced else 1000 * second
