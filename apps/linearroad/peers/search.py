"""The largest L that a system passes: found by one kind of probe, confirmed by another."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["confirmed", "largest"]


#: Half an expressway: no two values of L are closer.
MIN_STEP = 0.5


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


def confirmed(
    probe: Callable[[float], bool],
    rounded: Callable[[float], float],
    first: float,
    step: float = 0.1,
) -> float:
    """The first L that passes, beginning with one and going down by a tenth; 0 if none does.

    >>> whole = lambda L: float(int(L))
    >>> confirmed(lambda L: L <= 17, whole, 20.0)
    16.0
    >>> confirmed(lambda L: False, whole, 2.0)
    0.0
    """
    at = first
    while at > 0:
        if probe(at):
            return at
        below = min(rounded(at / (1 + step)), rounded(at - MIN_STEP))
        at = below if below < at else 0.0
    return 0.0
