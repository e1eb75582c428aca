"""The largest L that passes: raised until a probe fails, then narrowed down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Range", "largest"]


@dataclass(frozen=True)
class Range:
    """The values of L to try: multiples of `step` from the first to the last, until the largest
    that passes is known to a relative precision."""

    step: int
    first: int
    last: int
    known_to: float = 0.05

    def rounded(self, expressways: float) -> int:
        """The largest multiple of the step that is at most a number, limited to the range."""
        return min(max(int(expressways) // self.step, 1) * self.step, self.last)


def largest(probe: Callable[[int], bool], tried: Range) -> int:
    """The largest L for which the probe passes; 0 if there is none.

    >>> asked = []
    >>> largest(lambda L: asked.append(L) or L <= 730, Range(10, 100, 5000))
    720
    >>> asked
    [100, 200, 400, 800, 600, 700, 750, 720]
    """
    passed, failed = 0, 0  # 0: none yet
    at = tried.rounded(tried.first)
    while True:
        if probe(at):
            passed = at
        else:
            failed = at
        if passed == tried.last or failed == tried.step:
            return passed
        if not failed:
            at = tried.rounded(2 * passed)
        elif failed - passed <= max(tried.step, tried.known_to * passed):
            return passed
        else:
            at = tried.rounded((passed + failed) / 2)
