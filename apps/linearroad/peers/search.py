"""The largest L that a system passes: doubled until a probe fails, then narrowed down."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["largest"]


def largest(
    probe: Callable[[float], bool],
    rounded: Callable[[float], float],
    first: float,
    last: float,
    known_to: float = 0.1,
) -> float:
    """The largest L for which the probe passes, to a relative precision; 0 if there is none.

    `rounded` gives the largest L that can be tried and is at most a number.

    >>> asked = []
    >>> halves = lambda L: max(int(2 * L) / 2, 0.5)
    >>> largest(lambda L: asked.append(L) or L <= 2.5, halves, 1.0, 100.0)
    2.5
    >>> asked
    [1.0, 2.0, 4.0, 3.0, 2.5]
    >>> largest(lambda L: False, halves, 2.0, 100.0)
    0.0
    """
    passed, failed, at = 0.0, 0.0, rounded(min(first, last))
    while True:
        if probe(at):
            passed = at
        else:
            failed = at
        if not failed:
            at = rounded(min(2 * passed, last))
        elif failed - passed <= known_to * passed:
            return passed
        else:
            at = rounded((passed + failed) / 2)
        if at in (passed, failed):  # nothing that can be tried lies between
            return passed
