"""`Results`: what can be read of a run while it is under way, and when it has ended."""

from __future__ import annotations

import threading
import time
from html import escape
from typing import Any, Self

from numpy.typing import NDArray

from xstream._native import ffi, lib
from xstream.assembly import Assembly, NodeHandle
from xstream.engine.attachment import Position
from xstream.engine.native import NativePlan
from xstream.errors import GraphError
from xstream.graph import Graph, RelationRef, SinkRef
from xstream.notebook import stats_table
from xstream.ops.basic import Collect, Count
from xstream.ops.relation import Relation
from xstream.recovery.checkpoints import Checkpoints, CheckpointStats
from xstream.sched import Scheduler
from xstream.sigseg import MemoryManager, MemoryStats
from xstream.snapshot import Snapshot
from xstream.statistics import Counted, OperatorCost, OperatorStats

__all__ = ["Results"]


class Results:
    """What the sinks, the operators and the memory manager of a run hold; `Run` executes it."""

    query: Graph
    scheduler: Scheduler
    manager: MemoryManager
    #: The number of threads; fewer than requested if the query cannot be divided.
    threads: int
    #: Whether it was stopped before its sources ended.
    stopped: bool
    #: Whether it was Ctrl-C that stopped it.
    interrupted: bool
    wall_seconds: float

    _built: Assembly
    _plan: NativePlan
    _checkpoints: Checkpoints | None
    _phase: str  # "ready", then "running", and how it ended: "done", "stopped" or "failed"
    _began_at: float | None
    _earlier_samples: int
    #: Held while the plan is cut, and while another thread reads its counters.
    _reading: threading.Lock

    def uninterrupted(self) -> Self:
        """Return this run; raise `KeyboardInterrupt` if Ctrl-C stopped it.

        Use it when a part of the results must not be taken for all of them.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.ones(8), window=4)).count()
        >>> q.run().uninterrupted()[out]
        2
        """
        if self.interrupted:
            raise KeyboardInterrupt
        return self

    def __getitem__(self, sink: SinkRef | RelationRef) -> Any:
        """Return the result of a sink: a list for collect, a number for count, None for a function.

        For a relation it is a dictionary of arrays with its contents, sorted by key.
        """
        if isinstance(sink, RelationRef) and sink.query is self.query:
            operator = self._built.nodes[sink.node].operator
            assert isinstance(operator, Relation)
            return operator.read(self._built.ops[sink.node])
        if not isinstance(sink, SinkRef) or sink.query is not self.query:
            raise GraphError(f"{sink!r} is not a sink of {self.query!r}")
        node = self._built.nodes[sink.node]
        if isinstance(node.operator, Count):
            stats = self._built.stats(node)
            return Counted(stats.tuples, stats.samples)
        if isinstance(node.operator, Collect):
            return self._built.collected(node)
        return None

    @property
    def stats(self) -> dict[str, OperatorStats]:
        """The statistics of all operators by name: tuples, samples, own time, queue peaks."""
        return {node.name: self._built.stats(node) for node in self._built.nodes}

    def snapshot(self) -> Snapshot:
        """Return what the run has counted so far; at any time, from any thread.

        Threads that run the query are not stopped for it. Use it in the function that `progress=`
        names, or keep the run from there and read it in a thread of your own:

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.ones(64), window=4), name="ones").count()
        >>> def show(run):
        ...     print(run.snapshot()["ones"]["samples"])
        >>> run = q.run(progress=show)
        64
        """
        with self._reading:
            over = self._phase not in ("ready", "running")
            began = self._began_at
            wall_s = 0.0 if began is None else time.perf_counter() - began
            return self._built.snapshot(
                self.wall_seconds if over else wall_s, self._phase, self.threads
            )

    def stats_of(self, which: str | NodeHandle) -> OperatorStats:
        """Return the statistics of an operator, given by its name or by its stream."""
        return self._built.stats(self._built.node(which))

    def state(self, which: str | NodeHandle) -> dict[str, NDArray[Any]]:
        """Return a copy of the state of a kernel; `query.run(state=...)` continues from it.

        The kernel is given by its name or by a stream that comes from it.

        >>> import numpy as np, xstream as xs
        >>> @xs.kernel(state=np.zeros(1))
        ... def running(window, state):
        ...     state[0] += window.sum()
        ...     return state[0]
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.ones(8), rate_hz=1.0, window=4))
        >>> out = src.map(running, name="total").collect()
        >>> first = q.run()
        >>> first[out], first.state("total")
        ([4.0, 8.0], {'state': array([8.])})
        >>> q.run(state={"total": first.state("total")})[out]
        [12.0, 16.0]
        """
        return self._built.state(which)

    def positions(self) -> dict[str, Position]:
        """The positions of the sources and sinks that support them, by the names of operators.

        `query.run(positions=...)` continues from them. Everything that a sink's position covers is
        on disk.

        >>> import numpy as np, xstream as xs
        >>> np.arange(8, dtype=np.int16).tofile("eight.raw")
        >>> def reader(query):
        ...     source = xs.io.raw("eight.raw", dtype="int16", rate_hz=8.0, window=2)
        ...     return query.source(source, name="samples").collect()
        >>> first, second = xs.Query(), xs.Query()
        >>> out, rest = reader(first), reader(second)
        >>> positions = first.run().positions()
        >>> len(second.run(positions=positions)[rest])
        0
        """
        return self._built.positions()

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """The names of the operators that each thread runs.

        Operators without state may also run in earlier threads, which balances the work.
        """
        found: list[list[str]] = [[] for _ in range(self.threads)]
        for node in self._built.nodes:
            found[self._built.part(node)].append(node.name)
        return tuple(map(tuple, found))

    @property
    def costs(self) -> dict[str, OperatorCost]:
        """The costs of all operators in the memory manager, by name; zero unless profiled."""
        return {node.name: self._built.cost(node) for node in self._built.nodes}

    @property
    def manager_ns(self) -> int:
        """Nanoseconds spent in the memory manager; zero unless profiled."""
        spent = ffi.new("xs_spent *")
        lib.xs_manager_spent(self.manager._handle, spent)
        return int(spent.ns)

    @property
    def memory(self) -> MemoryStats:
        """The counters of the memory manager."""
        return self.manager.stats()

    @property
    def source_samples(self) -> int:
        """The number of samples that the sources have admitted."""
        built = self._built
        return sum(built.stats(node).samples for node in built.nodes if not node.operator.ports)

    @property
    def samples_per_second(self) -> float:
        """Samples of all sources per second of wall-clock time."""
        admitted = self.source_samples - self._earlier_samples
        return admitted / self.wall_seconds if self.wall_seconds else 0.0

    @property
    def checkpoints(self) -> CheckpointStats | None:
        """What the checkpoints of the run cost; None without checkpoints."""
        return None if self._checkpoints is None else self._checkpoints.stats

    @property
    def queue_bytes_peak(self) -> int:
        """The peak of the memory of all queues."""
        return int(lib.xs_plan_queue_bytes_peak(self._plan.handle))

    def _repr_html_(self) -> str:
        """The statistics of all operators, for notebooks."""
        return f"<p><code>{escape(repr(self))}</code></p>{stats_table(self.stats)}"

    def __repr__(self) -> str:
        seconds = self.wall_seconds
        took = f"{seconds:,.3f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
        return (
            f"<Run of {self.query.name}: {self._phase}, {self.source_samples:,} samples in "
            f"{took}, {self.scheduler.name}, {self.manager.name}>"
        )
