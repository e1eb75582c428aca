"""A stream that is stopped before its end: after a complete second, or at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from xstream.console.interrupts import interrupts_handled_by

__all__ = ["Stop", "interruptible"]

#: How long the work in progress may take after Ctrl-C before it is cut off.
FINISH_S = 0.7
SLICE_S = 0.05  # of waiting: the longest time for which Ctrl-C goes unnoticed


class Stop:
    """A request to stop: no more seconds of the stream begin.

    Unlike a `threading.Event` it has no lock, which interrupted code may hold. A signal handler can
    therefore set it at any time.
    """

    def __init__(self) -> None:
        self._set = False
        self._asked_at = 0.0
        self.times_asked = 0

    def set(self) -> None:
        """Stop after the work in progress."""
        self._set = True

    def is_set(self) -> bool:
        """Whether the stream is to stop."""
        return self._set

    def ask(self) -> None:
        """Stop at the user's request."""
        self._asked_at = self._asked_at or time.perf_counter()
        self.times_asked += 1
        self._set = True

    @property
    def by_user(self) -> bool:
        """Whether the user asked for it."""
        return self.times_asked > 0

    @property
    def at_once(self) -> bool:
        """Whether to cut off the work in progress: the user asked twice, or it takes too long."""
        if not self.times_asked:
            return False
        return self.times_asked > 1 or time.perf_counter() - self._asked_at > FINISH_S

    def wait(self, most_s: float) -> None:
        """Wait for `most_s` seconds, or until the stream is to stop."""
        until = time.perf_counter() + most_s
        while not self._set and (left := until - time.perf_counter()) > 0:
            time.sleep(min(left, SLICE_S))


@contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """Ctrl-C stops after the work in progress; a second one stops at once; a third one raises."""

    def on_interrupt(_: int, __: object) -> None:
        stop.ask()
        if stop.times_asked > 2:
            raise KeyboardInterrupt

    with interrupts_handled_by(on_interrupt):
        yield
