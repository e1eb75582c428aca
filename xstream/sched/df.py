"""DF: successors are called by reference as soon as a tuple is emitted."""

from __future__ import annotations

from xstream._native import lib
from xstream.sched.protocol import Scheduler

__all__ = ["SCHEDULER"]

SCHEDULER = Scheduler("df", lib.XS_DF)
