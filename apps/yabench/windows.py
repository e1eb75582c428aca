"""Windows, report policies, and what an engine should report when.

Window i = 1, 2, ... covers [max(0, i * slide - size), i * slide). While i * slide - slide <= t <
i * slide, window i is the active one: it holds the items from its start to t, and closes next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from xstream import InputError

__all__ = ["POLICIES", "Scope", "Window", "Windowing"]

POLICIES = ("window-close", "content-change", "non-empty", "periodic")
#: The most windows of one test, so that a wrong time in the input does not exhaust the memory.
MOST_WINDOWS = 1_000_000


class Scope(NamedTuple):
    """A range of time, [start, end) in ms, and so the items in it."""

    start: int
    end: int


class Window(NamedTuple):
    """One row of a judgement: a window, or with the policy periodic one report."""

    number: int
    scope: Scope
    #: Where the active part of the window begins: the window before it closed there.
    opened: int

    @property
    def end(self) -> int:
        """The end of the window in ms, by which engines name it."""
        return self.scope.end


@dataclass(frozen=True)
class Windowing:
    """Size and slide of the windows, and when their results are reported.

    >>> windowing = Windowing(5000, 1000)
    >>> windowing.window(2).scope, windowing.window(9).scope
    (Scope(start=0, end=2000), Scope(start=4000, end=9000))
    """

    size_ms: int
    slide_ms: int
    policy: str = "window-close"
    #: With content-change: whether a report has only the bindings that the last one had not.
    only_new: bool = False
    #: With periodic: the time between two reports.
    period_ms: int | None = None

    def __post_init__(self) -> None:
        if self.size_ms < 1 or self.slide_ms < 1:
            raise InputError(
                f"size and slide of a window are at least 1 ms, not {self.size_ms} and "
                f"{self.slide_ms}"
            )
        if self.policy not in POLICIES:
            raise InputError(f"there is no policy {self.policy!r}: choose {', '.join(POLICIES)}")
        if self.policy == "periodic" and (self.period_ms or 0) < 1:
            raise InputError("the policy periodic needs period_ms, at least 1")

    @property
    def step_ms(self) -> int:
        """The time between two rows of the judgement."""
        return self.period_ms or self.slide_ms if self.policy == "periodic" else self.slide_ms

    def window(self, index: int) -> Window:
        """Return the row with this index, from 1."""
        end = index * self.step_ms
        close = -(-end // self.slide_ms) * self.slide_ms
        return Window(index, Scope(max(0, close - self.size_ms), end), end - self.step_ms)

    def last_index(self, last_ms: int) -> int:
        """Return the last window with items of a stream that ends with this time; at least 1."""
        if self.policy == "periodic":
            return -(-(last_ms + 1) // self.step_ms)
        return max(1, (last_ms + self.size_ms) // self.slide_ms)

    def windows(self, last_ms: int, last_end: int = 0) -> Iterator[Window]:
        """Yield the windows that have items, and those up to an end that an engine named."""
        count = max(self.last_index(last_ms), last_end // self.step_ms)
        if count > MOST_WINDOWS:
            raise InputError(f"{count:,} windows are more than {MOST_WINDOWS:,}: check the times")
        return (self.window(index) for index in range(1, count + 1))
