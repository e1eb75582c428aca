"""A run that shall end before its stream does: after a whole second, or at once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Stop", "interruptible"]

#: How long the second that is being worked on may take after Ctrl-C; the engine may take another
#: second to end what is under way.
FINISH_S = 0.7
SLICE_S = 0.05  # of waiting: as long as Ctrl-C may go unnoticed


class Stop:
    """Whether a stream shall end before its end: no more seconds begin.

    Unlike a `threading.Event`, it can be set by a signal handler whatever is interrupted: there is
    no lock that the interrupted code may hold.
    """

    def __init__(self) -> None:
        self._set = False
        self._asked_at = 0.0
        self.times_asked = 0

    def set(self) -> None:
        """End the stream after the seconds that are being worked on."""
        self._set = True

    def is_set(self) -> bool:
        """Whether the stream shall end."""
        return self._set

    def ask(self) -> None:
        """End the stream, says the user."""
        self._asked_at = self._asked_at or time.perf_counter()
        self.times_asked += 1
        self._set = True

    @property
    def by_user(self) -> bool:
        """Whether the user asked for it."""
        return self.times_asked > 0

    @property
    def at_once(self) -> bool:
        """Whether what is being worked on is left as it is: asked for twice, or it takes long."""
        if not self.times_asked:
            return False
        return self.times_asked > 1 or time.perf_counter() - self._asked_at > FINISH_S

    def wait(self, most_s: float) -> None:
        """Wait for so long, or until the stream shall end."""
        until = time.perf_counter() + most_s
        while not self._set and (left := until - time.perf_counter()) > 0:
            time.sleep(min(left, SLICE_S))


@contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """Ctrl-C ends the stream after the second that is being worked on; again, and at once.

    Whoever presses it a third time is let out wherever the program is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_interrupt(_: int, __: object) -> None:
        stop.ask()
        if stop.times_asked > 2:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
