"""RTC: an operator drains its queues, then one of its successors runs."""

from __future__ import annotations

from xstream._native import lib
from xstream.sched.protocol import Scheduler

__all__ = ["SCHEDULER"]

SCHEDULER = Scheduler("rtc", lib.XS_RTC)
