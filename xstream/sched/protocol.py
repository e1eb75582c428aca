"""`Scheduler`: which loop of the core runs a plan, and with what."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Scheduler"]


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler by name; the loop is the core's (xstream/sched/*.c).

    `slice_us` is the time slice of those that have one, in microseconds.
    """

    name: str
    native: int
    slice_us: float = 0.0
