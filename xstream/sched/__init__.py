"""Four schedulers over one compiled plan (XStream, section III.C), with rate control.

`docs/schedulers.md` helps to choose one.
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
#: The values of `scheduler=`.
SCHEDULER_NAMES: tuple[str, ...] = tuple(_ALL)
#: The largest time slice: one hour.
MAX_SLICE_US = 3.6e9


def scheduler(name: str, slice_us: float | None = None) -> Scheduler:
    """Return the scheduler of a name, optionally with another time slice.

    >>> scheduler("fifo-slice", slice_us=100).slice_us
    100
    """
    if not isinstance(name, str) or name not in _ALL:
        known = ", ".join(SCHEDULER_NAMES)
        raise QueryError(f"there is no scheduler {name!r}: choose one of {known}")
    chosen = _ALL[name]
    if slice_us is None:
        return chosen
    if not chosen.slice_us:
        raise QueryError(f"{name} has no time slice: only fifo-slice does")
    number = isinstance(slice_us, int | float) and not isinstance(slice_us, bool)
    if not number or not 0 < slice_us <= MAX_SLICE_US:
        raise QueryError(
            f"a time slice is a positive number of microseconds, at most {MAX_SLICE_US:g}, not "
            f"{slice_us!r}"
        )
    return replace(chosen, slice_us=slice_us)
