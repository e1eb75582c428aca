"""Clocks for paced sources, which tests can replace, and the time of a stream."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "StopSignal", "StreamTime", "SystemClock"]


class StopSignal(Protocol):
    """A request to stop waiting: a `threading.Event` or a similar object."""

    def is_set(self) -> bool:
        """Return whether a stop was requested."""

    def wait(self, timeout: float) -> object:
        """Wait for the request, at most the given number of seconds."""


class Clock(Protocol):
    """A clock that can wait.

    >>> import threading
    >>> from xstream.testing import ManualClock
    >>> clock: Clock = ManualClock()
    >>> clock.wait(0.5, threading.Event())
    >>> clock()
    0.5
    """

    def __call__(self) -> float:
        """Seconds since an arbitrary moment; they never decrease."""

    def wait(self, seconds: float, stop: StopSignal) -> None:
        """Wait so long, or until `stop` is set."""


class SystemClock:
    """The monotonic clock of the system.

    >>> import threading
    >>> clock = SystemClock()
    >>> began = clock()
    >>> clock.wait(0.001, threading.Event())
    >>> clock() > began
    True
    """

    #: The longest single wait, within the limits of all operating systems.
    LONGEST_WAIT_S = 3600.0

    def __call__(self) -> float:
        """Seconds since an arbitrary moment."""
        return time.perf_counter()

    def wait(self, seconds: float, stop: StopSignal) -> None:
        """Wait so long, or until `stop` is set."""
        until = self() + seconds
        while not stop.is_set() and (left := until - self()) > 0:
            stop.wait(min(left, self.LONGEST_WAIT_S))


class StreamTime:
    """The time of a stream that passes `speed` times as fast as a clock, from its start on.

    With `speed=None` there is no pacing, and nothing is early or late.

    >>> from xstream.testing import ManualClock
    >>> import threading
    >>> clock = ManualClock()
    >>> stream = StreamTime(speed=2.0, begin_s=60.0, clock=clock)
    >>> stream.start()
    >>> stream.wait_for(70.0, threading.Event())
    0.0
    >>> clock(), stream.now_s()
    (5.0, 70.0)
    """

    def __init__(
        self, speed: float | None = 1.0, begin_s: float = 0.0, clock: Clock | None = None
    ) -> None:
        self.speed, self.begin_s = speed, begin_s
        self._clock = clock or SystemClock()
        self._began: float | None = None

    def start(self, ago_s: float = 0.0) -> None:
        """Start the stream now, or as if it had started so many seconds ago."""
        self._began = self._clock() - ago_s

    def wall_s(self) -> float:
        """Seconds of the clock since the start; 0 before it.

        >>> from xstream.testing import ManualClock
        >>> clock = ManualClock()
        >>> stream = StreamTime(speed=2.0, clock=clock)
        >>> stream.start()
        >>> clock.advance(2.0)
        >>> stream.wall_s()
        2.0
        """
        return 0.0 if self._began is None else self._clock() - self._began

    def now_s(self) -> float:
        """The current stream time in seconds."""
        return self.begin_s + self.wall_s() * (self.speed or 0.0)

    def due_in_s(self, second: float) -> float:
        """Seconds of the clock until a second of the stream; negative if it is late.

        >>> from xstream.testing import ManualClock
        >>> clock = ManualClock()
        >>> stream = StreamTime(speed=2.0, clock=clock)
        >>> stream.start()
        >>> clock.advance(2.0)
        >>> stream.due_in_s(10.0)
        3.0
        """
        return 0.0 if self.speed is None else (second - self.now_s()) / self.speed

    def wait_for(self, second: float, stop: StopSignal) -> float:
        """Wait for a second of the stream; return how late it is, in stream seconds."""
        due_in_s = self.due_in_s(second)
        if due_in_s > 0:
            self._clock.wait(due_in_s, stop)
        return max(-due_in_s, 0.0) * (self.speed or 0.0)

    def pause(self, seconds: float, stop: StopSignal) -> None:
        """Wait for the given number of seconds of the clock.

        >>> import threading
        >>> from xstream.testing import ManualClock
        >>> clock = ManualClock()
        >>> StreamTime(clock=clock).pause(1.5, threading.Event())
        >>> clock()
        1.5
        """
        self._clock.wait(seconds, stop)
