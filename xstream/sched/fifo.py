"""FIFO: one tuple at a time, always from the least recently dequeued queue."""

from __future__ import annotations

from xstream._native import lib
from xstream.sched.protocol import Scheduler

__all__ = ["SCHEDULER"]

SCHEDULER = Scheduler("fifo", lib.XS_FIFO)
