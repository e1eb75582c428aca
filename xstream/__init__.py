"""xstream: queries over signal segments, windows of evenly spaced samples passed by reference.

The rooms, lowest first; each uses only those named before it (a test checks the imports):

    xstream.errors       the error tree
    xstream._native      the core in C: blocks, counts, lists, managers, queues, scheduler loops
    xstream.sigseg       SigSeg, Timebase, the memory managers
    xstream.ops          the operator library, and kernels compiled to function pointers
    xstream.sched        four schedulers and rate control over a compiled plan
    xstream.query        declares a graph, checks it, runs it
    xstream.io           sources and sinks
    xstream.testing      harness, list source, strategies: for tests of operators, ours and yours
    xstream.report       pages
    xstream.cli          the command line

Names are loaded when they are first used, so that importing xstream costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xstream.errors import (
    DtypeError,
    GraphError,
    InputError,
    KernelError,
    ManagerError,
    NotAdjacentError,
    OperatorError,
    QueryError,
    SchemaError,
    SegmentMemoryError,
    SegmentRangeError,
    SigSegError,
    TimebaseError,
    XStreamError,
)

if TYPE_CHECKING:
    from xstream.sigseg import (
        MANAGER_NAMES,
        MemoryManager,
        MemoryStats,
        SegmentWriter,
        SigSeg,
        Timebase,
        memory_manager,
    )

_LAZY = {
    "MANAGER_NAMES": "xstream.sigseg",
    "MemoryManager": "xstream.sigseg",
    "MemoryStats": "xstream.sigseg",
    "SegmentWriter": "xstream.sigseg",
    "SigSeg": "xstream.sigseg",
    "Timebase": "xstream.sigseg",
    "memory_manager": "xstream.sigseg",
}

__all__ = [
    "MANAGER_NAMES",
    "DtypeError",
    "GraphError",
    "InputError",
    "KernelError",
    "ManagerError",
    "MemoryManager",
    "MemoryStats",
    "NotAdjacentError",
    "OperatorError",
    "QueryError",
    "SchemaError",
    "SegmentMemoryError",
    "SegmentRangeError",
    "SegmentWriter",
    "SigSeg",
    "SigSegError",
    "Timebase",
    "TimebaseError",
    "XStreamError",
    "memory_manager",
]


def __getattr__(name: str) -> Any:
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'xstream' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
