"""FIFO-Slice: serves the least recently dequeued queue for one time slice."""

from __future__ import annotations

from xstream._native import lib
from xstream.sched.protocol import Scheduler

__all__ = ["SCHEDULER"]

SCHEDULER = Scheduler("fifo-slice", lib.XS_FIFO_SLICE, slice_us=28.0)
