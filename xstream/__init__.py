"""xstream: queries over signal segments, windows of evenly spaced samples passed by reference.

The rooms, lowest first; each uses only those named before it (a test checks the imports):

    xstream.errors       the error tree
    xstream.console      what commands share: interrupts, progress, checks of options and outputs
    xstream._native      the core in C: blocks, counts, lists, managers, queues, scheduler loops
    xstream.sigseg       SigSeg, Timebase, the memory managers
    xstream.engine       what runs a plan: operators, queues, costs, the bridge to Python
    xstream.sched        four schedulers and rate control over a compiled plan
    xstream.kernels      from @xs.kernel to a function pointer, and the cache of compiled code
    xstream.ops          the operator library, one operator per file
    xstream.query        declares a graph; also graph, stream, pictures and what runs it
    xstream.io           sources and sinks
    xstream.testing      test harness: runs single operators, list source, strategies
    xstream.bench        the paper's benchmarks, and the same work on other engines
    xstream.report       HTML pages
    xstream.live         runs on a page while they are under way, in the terminal and in files
    xstream.cli          the command line; `python -m xstream` is the same

Names are loaded when they are first used, so that `import xstream` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xstream import views as _views
from xstream.errors import (
    DtypeError,
    GraphError,
    InputError,
    KernelError,
    ManagerError,
    MissingPackageError,
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
    from xstream import io as io
    from xstream import testing as testing
    from xstream.engine.schema import Out, Scalar, Schema, Segment, schema
    from xstream.kernels._numba import array_at, grow, prefetch
    from xstream.kernels.compiled import compiled
    from xstream.kernels.kernel import Kernel, kernel
    from xstream.kernels.rolling import Rolling
    from xstream.live import HeatMap, Limits, Live
    from xstream.partition import Partition
    from xstream.query import Query
    from xstream.recovery.checkpoints import CheckpointStats
    from xstream.recovery.owners import Recoverable
    from xstream.run import KernelState, OperatorCost, OperatorStats, Run
    from xstream.sched import SCHEDULER_NAMES
    from xstream.sigseg import (
        MANAGER_NAMES,
        MemoryManager,
        MemoryStats,
        SegmentWriter,
        SigSeg,
        Timebase,
        memory_manager,
    )
    from xstream.snapshot import OperatorRates, Rates, Snapshot
    from xstream.stream import Stream

    __version__: str

_LAZY = {
    "MANAGER_NAMES": "xstream.sigseg",
    "MemoryManager": "xstream.sigseg",
    "MemoryStats": "xstream.sigseg",
    "SegmentWriter": "xstream.sigseg",
    "SigSeg": "xstream.sigseg",
    "Timebase": "xstream.sigseg",
    "memory_manager": "xstream.sigseg",
    "Kernel": "xstream.kernels.kernel",
    "kernel": "xstream.kernels.kernel",
    "Rolling": "xstream.kernels.rolling",
    "array_at": "xstream.kernels._numba",
    "compiled": "xstream.kernels.compiled",
    "grow": "xstream.kernels._numba",
    "prefetch": "xstream.kernels._numba",
    "Out": "xstream.engine.schema",
    "Scalar": "xstream.engine.schema",
    "Schema": "xstream.engine.schema",
    "Segment": "xstream.engine.schema",
    "schema": "xstream.engine.schema",
    "Query": "xstream.query",
    "CheckpointStats": "xstream.recovery.checkpoints",
    "Recoverable": "xstream.recovery.owners",
    "KernelState": "xstream.run",
    "OperatorCost": "xstream.run",
    "OperatorStats": "xstream.run",
    "Run": "xstream.run",
    "Partition": "xstream.partition",
    "Stream": "xstream.stream",
    "SCHEDULER_NAMES": "xstream.sched",
    "Snapshot": "xstream.snapshot",
    "Rates": "xstream.snapshot",
    "OperatorRates": "xstream.snapshot",
    "Live": "xstream.live",
    "HeatMap": "xstream.live",
    "Limits": "xstream.live",
}

#: Rooms that are available as attributes.
_ROOMS = ("io", "testing")

__all__ = [
    "MANAGER_NAMES",
    "SCHEDULER_NAMES",
    "CheckpointStats",
    "DtypeError",
    "GraphError",
    "HeatMap",
    "InputError",
    "Kernel",
    "KernelError",
    "KernelState",
    "Limits",
    "Live",
    "ManagerError",
    "MemoryManager",
    "MemoryStats",
    "MissingPackageError",
    "NotAdjacentError",
    "OperatorCost",
    "OperatorError",
    "OperatorRates",
    "OperatorStats",
    "Out",
    "Partition",
    "Query",
    "QueryError",
    "Rates",
    "Recoverable",
    "Rolling",
    "Run",
    "Scalar",
    "Schema",
    "SchemaError",
    "Segment",
    "SegmentMemoryError",
    "SegmentRangeError",
    "SegmentWriter",
    "SigSeg",
    "SigSegError",
    "Snapshot",
    "Stream",
    "Timebase",
    "TimebaseError",
    "XStreamError",
    "__version__",
    "array_at",
    "compiled",
    "grow",
    "io",
    "kernel",
    "memory_manager",
    "prefetch",
    "schema",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"xstream.{name}")
    if name == "__version__":
        return _version()
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'xstream' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_ROOMS, "__version__"})


@_views.use_views
def _view_of(asked: object) -> _views.View:
    """The live view is above the queries, which do not know it."""
    from xstream.live import view_of as _view_of_value

    return _view_of_value(asked)


def _version() -> str:
    from importlib.metadata import version

    found = version("xstream")
    globals()["__version__"] = found
    return found
