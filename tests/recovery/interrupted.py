"""Runs that are interrupted after so many tuples, with a checkpoint at that point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xstream as xs
import xstream.run
from xstream.recovery import checkpoints
from xstream.run import Run
from xstream.sched import scheduler as scheduler_named
from xstream.sched.threads import MEASURE_NS


class After:
    """A request to stop that comes with the n-th look."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def is_set(self) -> bool:
        self.looks -= 1
        return self.looks < 0


def interrupted_run(
    query: xs.Query, looks: int, folder: Path, *, scheduler: str = "df",
    memory: str = "refcount-lazy", tuple_burst: int | None = 4, threads: int = 1,
    fuse: bool = True, resume: bool = False, settled: bool = True,
) -> Run:  # fmt: skip
    """A run that looks up after every few tuples and stops after so many looks.

    Unless `settled`, it stops between any two tuples, where some wait in queues.
    """
    slice_us = 50.0 if scheduler == "fifo-slice" else None
    before, xstream.run.SETTLE_S = xstream.run.SETTLE_S, 5.0 if settled else -1.0
    last_before, checkpoints.LAST_S = checkpoints.LAST_S, 60.0  # on a machine that is busy
    try:
        with checkpoints.Checkpoints(folder, 1e6, resume) as taken:
            run = Run(
                query, scheduler_named(scheduler, slice_us), xs.memory_manager(memory), tuple_burst,
                threads=threads, fuse=fuse, checkpoints=taken,
            )  # fmt: skip
            run.look_up_ns = 1
            run.measure_ns = MEASURE_NS if threads == 1 else 0
            stop: Any = After(looks)
            run.execute(stop=stop)
            return run
    finally:
        xstream.run.SETTLE_S, checkpoints.LAST_S = before, last_before
