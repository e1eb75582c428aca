"""Four schedulers over one compiled plan (XStream, section III.C), and rate control around any.

`docs/schedulers.md` says when to choose which.
"""

from __future__ import annotations

from dataclasses import replace

from xstream.errors import QueryError
from xstream.sched import df, fifo, fifo_slice, rtc
from xstream.sched.protocol import Scheduler

__all__ = ["SCHEDULER_NAMES", "Scheduler", "scheduler"]

_ALL: dict[str, Scheduler] = {
    module.SCHEDULER.name: module.SCHEDULER for module in (fifo, fifo_slice, rtc, df)
}
#: The names that `scheduler=` takes.
SCHEDULER_NAMES: tuple[str, ...] = tuple(_ALL)


def scheduler(name: str, slice_us: float | None = None) -> Scheduler:
    """The scheduler of that name, with another time slice if one is given.

    >>> scheduler("fifo-slice", slice_us=100).slice_us
    100
    """
    if name not in _ALL:
        known = ", ".join(SCHEDULER_NAMES)
        raise QueryError(f"there is no scheduler {name!r}: choose one of {known}")
    chosen = _ALL[name]
    if slice_us is None:
        return chosen
    if not chosen.slice_us:
        raise QueryError(f"{name} has no time slice: only fifo-slice does")
    if slice_us <= 0:
        raise QueryError(f"a time slice is a positive number of microseconds, not {slice_us}")
    return replace(chosen, slice_us=slice_us)
