"""`Scheduler`: the loop of the core that runs a plan, and its parameters."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Scheduler"]


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler by name; its loop is in the core (xstream/sched/*.c).

    `slice_us` is the time slice of those that have one, in microseconds.
    """

    name: str
    native: int
    slice_us: float = 0.0
