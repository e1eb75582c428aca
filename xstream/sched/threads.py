"""Several threads: each runs one part of a plan that `cut.c` has cut, without the GIL."""

from __future__ import annotations

import contextvars
import os
import threading
import time
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan
from xstream.errors import QueryError

__all__ = [
    "MEASURE_MOST_NS",
    "MEASURE_NS",
    "MEASURE_WAIT_NS",
    "PartThreads",
    "thread_count",
    "usable_cores",
]

#: How long one thread runs a plan before its operators are divided by their busy times.
MEASURE_NS = 20_000_000
#: The same if some source has admitted almost nothing until then: processor time, and in all.
MEASURE_MOST_NS = 500_000_000
MEASURE_WAIT_NS = 2_000_000_000
#: How long a thread runs in the core before it checks for a stop.
LOOK_UP_NS = 250_000_000
#: How long Python code of an operator may take to end after a stop.
LEAVE_S = 2.0


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """Return the number of threads for `threads=`: at most one per core; None means all cores.

    >>> thread_count(1)
    1
    >>> thread_count(10_000) == thread_count(None) == usable_cores()
    True
    """
    whole = isinstance(threads, int) and not isinstance(threads, bool)
    if threads is not None and not (whole and threads >= 1):
        raise QueryError(f"threads is a positive number, or None for all cores, not {threads!r}")
    return usable_cores() if threads is None else min(threads, usable_cores())


class PartThreads:
    """The threads of a plan that was cut: started at once, each runs its part to the end.

    A part that fails stops the others. They keep the plan alive until they have ended.
    """

    def __init__(self, plan: NativePlan, parts: int) -> None:
        self.plan = plan
        self.statuses: list[int] = [int(lib.XS_OK)] * parts
        #: Processor time of each thread, once it has ended.
        self.cpu_seconds = [0.0] * parts
        self.left = parts
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._given_up = False
        self._settled = 0
        self._changed = threading.Condition(self._lock)
        self._threads = [
            threading.Thread(
                # Operators in Python find the memory manager of the `with` block around the run.
                target=contextvars.copy_context().run,
                args=(self._run_part, part),
                name=f"xstream part {part}",
                daemon=True,
            )
            for part in range(parts)
        ]
        for thread in self._threads:
            thread.start()

    def _run_part(self, part: int) -> None:
        handle: Any = lib.xs_plan_part(self.plan.handle, part)
        status = int(lib.XS_OK)
        while status in (lib.XS_OK, lib.XS_WAIT) and not self._given_up:
            status = int(lib.xs_plan_run(handle, LOOK_UP_NS))
            if status == lib.XS_SETTLED:
                self._stand_still()
                status = int(lib.XS_OK)
        if status == lib.XS_FAILED:
            lib.xs_plan_stop(self.plan.handle)
        with self._lock:
            self.statuses[part] = status
            self.cpu_seconds[part] = time.thread_time()
            self.left -= 1
            self._changed.notify_all()
            if not self.left:
                self._ended.set()

    def _stand_still(self) -> None:
        """Wait until the run goes on, with all threads."""
        with self._lock:
            self._settled += 1
            self._changed.notify_all()
            while self._settled and not self._given_up:
                self._changed.wait()

    def settle(self, seconds: float) -> bool:
        """Let all threads stand still with no tuple in flight; False if they end instead.

        `go_on` must follow if it returns True. Also False if it takes too long: the threads then
        stand still a little later, and `go_on` must follow as well.
        """
        parts = len(self._threads)
        if not self._settled:
            lib.xs_plan_settle(self.plan.handle)
        until = time.monotonic() + seconds
        with self._lock:
            while self._settled < parts and self.left == parts:
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            return self._settled == parts

    def go_on(self) -> None:
        """Let the threads run on after `settle`."""
        with self._lock:
            self._settled = 0
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait up to the given time; return whether all threads have ended."""
        return self._ended.wait(seconds)

    def give_up(self) -> None:
        """Ask all threads to end; tuples in flight are dropped."""
        self._given_up = True
        self.go_on()
        lib.xs_plan_give_up(self.plan.handle)

    def end(self) -> int:
        """End all threads that still run, and return the status of the run.

        Only a thread that is still in Python code of a user after the time limit is abandoned.
        """
        if self.left:
            self.give_up()
        for thread in self._threads:
            thread.join(LEAVE_S if self._given_up else None)
        if lib.XS_FAILED in self.statuses:
            return int(lib.XS_FAILED)
        return int(lib.XS_OK if self._given_up else lib.XS_END)
