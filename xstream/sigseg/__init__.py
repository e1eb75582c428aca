"""Signal segments, their timebases and their memory managers; independent of queries."""

from __future__ import annotations

from xstream.sigseg.manager import (
    MANAGER_NAMES,
    REASONS,
    MemoryManager,
    MemoryStats,
    current_manager,
    memory_manager,
)
from xstream.sigseg.segment import SigSeg
from xstream.sigseg.timebase import Timebase
from xstream.sigseg.writer import SegmentWriter

__all__ = [
    "MANAGER_NAMES",
    "REASONS",
    "MemoryManager",
    "MemoryStats",
    "SegmentWriter",
    "SigSeg",
    "Timebase",
    "current_manager",
    "memory_manager",
]
