"""`Run`: one execution of a query, its results and its statistics."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

from numpy.typing import NDArray

from xstream._native import ffi, lib
from xstream.console import interrupts_handled_by
from xstream.engine._python import take_error
from xstream.engine.attachment import Outcome, Position, Resumable
from xstream.engine.native import NativePlan, describe_tuple, read_slots
from xstream.engine.schema import Schema
from xstream.errors import GraphError, InputError, OperatorError, SegmentMemoryError
from xstream.fusion import Regions, SingleTuple, chains
from xstream.graph import Graph, Node, Port, RelationRef, SinkRef
from xstream.kernels.apply import KernelApply
from xstream.ops.basic import Collect, Count
from xstream.ops.relation import Relation
from xstream.sched import Scheduler
from xstream.sched.threads import MEASURE_NS, PartThreads
from xstream.sigseg import REASONS, MemoryManager, MemoryStats
from xstream.stream import Stream

__all__ = [
    "Counted",
    "Delays",
    "InitialState",
    "KernelState",
    "OperatorCost",
    "OperatorStats",
    "Positions",
    "Run",
]

#: The arrays that a kernel keeps between calls, by name.
KernelState = Mapping[str, NDArray[Any]]


class NodeHandle(Protocol):
    """The handle of an operator: a stream that comes from it, or a sink."""

    @property
    def query(self) -> Graph:
        """The query."""

    @property
    def node(self) -> int:
        """The number of the operator."""


#: Initial states of kernels, by the names of operators or by their streams.
InitialState = Mapping[str, KernelState] | Mapping[Stream, KernelState]

#: Positions at which sources and sinks begin, by the names of operators.
Positions = Mapping[str, Position]

#: How long the core runs before Python checks for Ctrl-C, a stop and progress.
LOOK_UP_NS = 50_000_000
#: Time for tuples in flight after a stop, because a cycle might never end.
STOP_GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class Delays:
    """How long tuples took: the median, the 99th percentile (both exact to 3 %) and the maximum."""

    count: int
    p50_ns: int
    p99_ns: int
    worst_ns: int


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """The statistics of an operator.

    `busy_ns` is its own time without that of its successors, extrapolated from a sample of its
    tuples. A source whose tuples have arrival times has two more values: `lateness` is the time
    from arrival to admission, and `latency` the time from arrival until the sinks have all results.
    `dropped` counts rows that came too late and tuples that were shed. The operators of a region,
    which are compiled into one function, are timed together: the first one has the time of all.
    """

    tuples: int
    samples: int
    emitted: int
    busy_ns: int
    queue_peak: int
    queue_peak_bytes: int
    lateness: Delays | None = None
    latency: Delays | None = None
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """The costs that an operator caused in the memory manager, in a profiled run.

    `copied_for` are bytes by reason, as in `MemoryStats`. The cost of passing a tuple is charged
    to the operator that receives it. `manager_ns` is part of the operator's `busy_ns`.
    """

    bytes_copied: int
    copied_for: dict[str, int]
    allocations: int
    reallocations: int
    moved_reallocations: int
    manager_ns: int


class Counted(int):
    """The number of tuples of a `.count()`; `samples` is the number of their samples."""

    samples: int

    def __new__(cls, tuples: int, samples: int) -> Counted:
        """Make one from both numbers."""
        counted = super().__new__(cls, tuples)
        counted.samples = samples
        return counted


class Run:
    """A run of a query: its results so far, and all of them at the end."""

    def __init__(
        self,
        query: Graph,
        scheduler: Scheduler,
        manager: MemoryManager,
        tuple_burst: int | None,
        profile: bool = False,
        state: InitialState | None = None,
        debug: bool | None = None,
        positions: Positions | None = None,
        threads: int = 1,
        fuse: bool = True,
    ) -> None:
        self.query, self.scheduler, self.manager = query, scheduler, manager
        self.tuple_burst = tuple_burst
        #: The number of threads; fewer than requested if the query cannot be divided.
        self.threads = 1
        #: CPU seconds of each thread, without the first phase, which one thread runs alone.
        self.part_seconds: tuple[float, ...] = ()
        self._threads_asked = threads
        self._measured_ns = 0
        #: Whether it was stopped before its sources ended.
        self.stopped = False
        #: Whether it was Ctrl-C that stopped it.
        self.interrupted = False
        self._phase = "ready"  # then "running", and how it ended: "done", "stopped" or "failed"
        self.wall_seconds = 0.0
        self._stopped_at = 0.0
        self._nodes = tuple(query.nodes)
        self._named = {node.name: node for node in self._nodes}
        self._plan = NativePlan(manager, debug)
        fused = fuse and not profile and self._can_fuse()
        self._regions = Regions(query, chains(query) if fused else ())
        self._ops = self._build()
        self._restore(state or {})
        self._resume(positions or {})
        #: How long the core runs between two calls of `progress`.
        self.look_up_ns = LOOK_UP_NS
        #: How long one thread runs it before it is divided among several.
        self.measure_ns = MEASURE_NS
        if profile and lib.xs_plan_profile(self._plan.handle):
            raise SegmentMemoryError("no memory is left to profile the query")

    def _can_fuse(self) -> bool:
        """Regions need direct calls, and segments that are passed without a copy."""
        direct = self.scheduler.native == lib.XS_DF
        alone = self._threads_asked == 1  # threads cut a query between operators
        return direct and alone and not self._plan.debug and self.manager.name != "copy-always"

    def _build(self) -> list[Any]:
        ops = []
        for node in self._nodes:
            inputs = tuple(self.query.schema_of(edge) for edge in node.inputs if edge is not None)
            operator, fused = node.operator, node.id in self._regions.places
            create = operator.create_member if fused else operator.create
            op = create(self._plan, inputs, node.outputs)
            self._plan.shape(op, inputs, node.outputs)
            ops.append(op)
        regions = self._regions
        regions.create(self._plan, ops)
        for node in self._nodes:
            for port, edge in enumerate(node.inputs):
                if edge is not None and not regions.joined(edge.node, node.id):
                    origin = regions.exit(edge.node, ops[edge.node])
                    self._plan.connect(
                        origin, edge.port, regions.entry(node.id, ops[node.id]), port
                    )
        status = lib.xs_plan_prepare(
            self._plan.handle, self.scheduler.native, self.tuple_burst or 0,
            int(self.scheduler.slice_us * 1000),
        )  # fmt: skip
        if status:
            raise SegmentMemoryError("no memory is left for the query")
        return ops

    def _restore(self, state: InitialState) -> None:
        """Set the initial states of kernels; one operator's arrays are held at a time."""
        for which, arrays in state.items():
            node = self._node(which)
            operator, inputs = self._kernel(node)
            operator.write_state(self._ops[node.id], inputs, arrays)

    def _resume(self, positions: Positions) -> None:
        """Start sources and sinks at the positions of an earlier run."""
        for name, position in positions.items():
            attachment = self._plan.attachment(self._ops[self._node(name).id])
            if not isinstance(attachment, Resumable):
                raise GraphError(f"{name} has no position to begin at")
            attachment.restore(position)

    def positions(self) -> dict[str, Position]:
        """The positions of the sources and sinks that support them, by the names of operators.

        `query.run(positions=...)` continues from them. Everything that a sink's position covers is
        on disk.
        """
        attached = ((node.name, self._plan.attachment(self._ops[node.id])) for node in self._nodes)
        return {name: what.position() for name, what in attached if isinstance(what, Resumable)}

    def _node(self, which: str | NodeHandle) -> Node:
        """The operator of a name, or the one that a stream comes from."""
        if not isinstance(which, str):
            if which.query is not self.query:
                raise GraphError(f"{which!r} belongs to another query")
            return self._nodes[which.node]
        if which not in self._named:
            raise GraphError(f"{which!r} is no operator of {self.query!r}")
        return self._named[which]

    def _kernel(self, node: Node) -> tuple[KernelApply, Schema]:
        """A node's kernel and its input schemas; an error if the node is not a kernel."""
        edge = node.inputs[0] if node.inputs else None
        if not isinstance(node.operator, KernelApply) or edge is None:
            raise GraphError(f"{node.name} is not a kernel: it keeps no state that can be had")
        return node.operator, self.query.schema_of(edge)

    # -- running -----------------------------------------------------------------------------

    def execute(
        self, progress: bool | Callable[[Run], None] = False, stop: threading.Event | None = None
    ) -> None:
        """Run until the sources end, the run is stopped, or an operator fails."""
        line = _ProgressReport(self.query.name) if progress is True else None
        report = line if line is not None else progress if callable(progress) else None
        ended: Outcome = "failed"
        self._phase = "running"
        try:
            with _interrupts_stop(self._interrupt):
                self._plan.begin()
                if self._execute(report, stop) == lib.XS_FAILED:
                    self._raise_failure()
                ended = "stopped" if self.stopped else "done"
                if errors := self._plan.end(ended):
                    ended = "failed"
                    self._raise_at_end(*errors[0])
        finally:
            self._phase = ended
            if ended == "failed":
                self._plan.end(ended)
            if line is not None:
                line.close(self)

    def _execute(self, report: Callable[[Run], None] | None, stop: threading.Event | None) -> int:
        """Run the core in slices and return its last status."""
        begin = time.perf_counter()
        status, interrupts = lib.XS_OK, 0
        team: PartThreads | None = None
        measuring = self._threads_asked > 1
        while status in (lib.XS_OK, lib.XS_WAIT):
            try:
                if stop is not None and stop.is_set() and not self.stopped:
                    self._stop()
                if self.stopped and time.perf_counter() - self._stopped_at > STOP_GRACE_S:
                    break
                if team is None:
                    status = self._run_alone(measuring)
                    if status == lib.XS_SETTLED:
                        status, measuring, team = lib.XS_OK, False, self._divide()
                elif team.wait(self.look_up_ns / 1e9):
                    break
                self.wall_seconds = time.perf_counter() - begin
                if report is not None:
                    report(self)
            except KeyboardInterrupt:
                interrupts += 1
                self._interrupt()
                if interrupts > 1:  # interrupted twice: tuples in flight are abandoned
                    break
        if team is not None:
            status = team.end()
            self.part_seconds = tuple(team.cpu_seconds)
        self.wall_seconds = time.perf_counter() - begin
        return int(status)

    def _run_alone(self, measuring: bool) -> int:
        """Let the core run on this thread; measured, until it can be divided."""
        if not measuring:
            return int(lib.xs_plan_run(self._plan.handle, self.look_up_ns))
        if self._measured_ns >= self.measure_ns:
            if not self._measured_ns:  # nothing has begun
                return int(lib.XS_SETTLED)
            lib.xs_plan_settle(self._plan.handle)
        begin = time.perf_counter_ns()
        budget_ns = min(self.look_up_ns, max(self.measure_ns - self._measured_ns, 0))
        status = int(lib.xs_plan_run(self._plan.handle, budget_ns or self.look_up_ns))
        self._measured_ns += time.perf_counter_ns() - begin
        return status

    def _divide(self) -> PartThreads | None:
        """Cut the plan by the busy times so far; None if it must run on one thread."""
        parts = lib.xs_plan_cut(self._plan.handle, self._threads_asked)
        if parts < 0:
            raise SegmentMemoryError("no memory is left for the threads of the query")
        self.threads = parts
        return PartThreads(self._plan, parts) if parts > 1 else None

    def _interrupt(self) -> None:
        self.interrupted = True
        self._stop()

    def _stop(self) -> None:
        if not self.stopped:
            self._stopped_at = time.perf_counter()
        self.stopped = True
        lib.xs_plan_stop(self._plan.handle)

    def _raise_failure(self) -> None:
        failure = ffi.new("xs_failure *")
        lib.xs_plan_failure(self._plan.handle, failure)
        node = self._failed_node(failure.op)
        message = ffi.string(failure.message).decode(errors="replace")
        attachment = self._plan.attachment(self._ops[node.id])
        cause = take_error(self._ops[node.id])
        if cause is None and attachment is not None:
            cause = attachment.error
        if isinstance(cause, KeyboardInterrupt):  # Ctrl-C interrupted a Python operator
            self._interrupt()
            return
        if failure.port < 0:
            where = node.name
        else:
            port = node.operator.port_name(failure.port)
            edge = node.inputs[failure.port]
            assert edge is not None
            schema = self.query.schema_of(edge)
            values = read_slots(failure.tuple, schema, self._plan.signals(schema))
            self._run_again(self._regions.rerun(node.id), schema, values)
            where = f"{node.name}, port {port!r}, tuple {describe_tuple(values)}"
        if cause is None:
            region = self._regions.head_of(failure.op) is not None  # memory ran out between kernels
            cause = None if region else node.operator.raised(failure.stand_in)
        if isinstance(cause, InputError):  # its message already names the operator and the cause
            raise InputError(f"{where}: {cause}") from cause
        if cause is not None:
            message = f"{type(cause).__name__}: {cause}"
        if cause is None and failure.out_of_memory:
            raise self.manager.out_of_memory(f"{where}: a result")
        raise OperatorError(f"{where}: {message}") from cause

    def _raise_at_end(self, op: Any, error: BaseException) -> None:
        """Raise the errors of attachments that failed at the end of the run."""
        if not isinstance(error, Exception):
            raise error
        name = next(node.name for node in self._nodes if self._ops[node.id] == op)
        if isinstance(error, InputError):
            raise InputError(f"{name}: {error}") from error
        raise OperatorError(f"{name}: {type(error).__name__}: {error}") from error

    def _failed_node(self, op: Any) -> Node:
        head = self._regions.head_of(op)
        if head is not None:
            return self._nodes[head]
        return next(node for node in self._nodes if self._ops[node.id] == op)

    def _run_again(self, chain: tuple[int, ...], schema: Schema, values: tuple[Any, ...]) -> None:
        """Run the operators of a region one by one on a tuple and raise the error that occurs.

        A loop that several operators share does not tell which of them failed.
        """
        if not chain:
            return
        graph = Graph(self.query.name)
        stream = Port(graph, graph.add_node(SingleTuple(schema, values), ()).id, 0)
        for number in chain:
            node = self._nodes[number]
            stream = Port(graph, graph.add_node(node.operator, (stream,), node.name).id, 0)
            if not node.outputs:
                break
        else:
            graph.add_node(Count(), (stream,))
        Run(graph, self.scheduler, self.manager, None, fuse=False).execute()

    # -- results -----------------------------------------------------------------------------

    def uninterrupted(self) -> Run:
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
            operator = self._nodes[sink.node].operator
            assert isinstance(operator, Relation)
            return operator.read(self._ops[sink.node])
        if not isinstance(sink, SinkRef) or sink.query is not self.query:
            raise GraphError(f"{sink!r} is not a sink of {self.query!r}")
        node = self._nodes[sink.node]
        if isinstance(node.operator, Count):
            stats = self._stats(node)
            return Counted(stats.tuples, stats.samples)
        if isinstance(node.operator, Collect):
            return self._collected(node)
        return None

    def _collected(self, node: Node) -> list[Any]:
        op, edge = self._ops[node.id], node.inputs[0]
        assert edge is not None
        schema = self.query.schema_of(edge)
        signals = self._plan.signals(schema)
        rows = (
            read_slots(lib.xs_collected_tuple(op, i), schema, signals)
            for i in range(lib.xs_collected(op))
        )
        return [row[0] for row in rows] if len(schema) == 1 else list(rows)

    def _stats(self, node: Node) -> OperatorStats:
        native = self._regions.stats(node.id)
        if native is None:
            native = ffi.new("xs_op_stats *")
            lib.xs_op_stats_read(self._ops[node.id], native)
        return OperatorStats(
            native.tuples, native.samples, native.emitted, native.busy_ns, native.queue_peak,
            native.queue_peak_bytes, *self._delays(self._ops[node.id]),
            native.dropped,
        )  # fmt: skip

    def _delays(self, op: Any) -> tuple[Delays | None, Delays | None]:
        lateness, latency = ffi.new("xs_delay_stats *"), ffi.new("xs_delay_stats *")
        lib.xs_op_delays_read(op, lateness, latency)
        late, whole = (
            Delays(each.count, each.p50_ns, each.p99_ns, each.worst_ns) if each.count else None
            for each in (lateness, latency)
        )
        return late, whole

    @property
    def stats(self) -> dict[str, OperatorStats]:
        """The statistics of all operators by name: tuples, samples, own time, queue peaks."""
        return {node.name: self._stats(node) for node in self._nodes}

    def stats_of(self, which: str | NodeHandle) -> OperatorStats:
        """Return the statistics of an operator, given by its name or by its stream."""
        return self._stats(self._node(which))

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
        node = self._node(which)
        operator, inputs = self._kernel(node)
        return operator.read_state(self._ops[node.id], inputs)

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """The names of the operators that each thread runs.

        Operators without state may also run in earlier threads, which balances the work.
        """
        found: list[list[str]] = [[] for _ in range(self.threads)]
        for node in self._nodes:
            found[lib.xs_op_part(self._ops[node.id])].append(node.name)
        return tuple(map(tuple, found))

    @property
    def costs(self) -> dict[str, OperatorCost]:
        """The costs of all operators in the memory manager, by name; zero unless profiled."""
        return {node.name: self._cost(node) for node in self._nodes}

    def _cost(self, node: Node) -> OperatorCost:
        native = ffi.new("xs_cost *")
        lib.xs_op_cost_read(self._ops[node.id], native)
        copied = {why: native.bytes_copied[i] for i, why in enumerate(REASONS)}
        return OperatorCost(
            sum(copied.values()), copied, native.allocations, native.reallocations,
            native.moved_reallocations, native.manager_ns,
        )  # fmt: skip

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
        return sum(self._stats(node).samples for node in self._nodes if not node.operator.ports)

    @property
    def samples_per_second(self) -> float:
        """Samples of all sources per second of wall-clock time."""
        return self.source_samples / self.wall_seconds if self.wall_seconds else 0.0

    @property
    def queue_bytes_peak(self) -> int:
        """The peak of the memory of all queues."""
        return int(lib.xs_plan_queue_bytes_peak(self._plan.handle))

    def __repr__(self) -> str:
        return (
            f"<Run of {self.query.name}: {self._phase}, {self.source_samples:,} samples in "
            f"{self.wall_seconds:.3f} s, {self.scheduler.name}, {self.manager.name}>"
        )


@contextmanager
def _interrupts_stop(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C stops the run, and raises only in the code of the user.

    In our code it could arrive in a finaliser, where Python discards it, or while a segment changes
    owner. A second one raises anywhere. A handler that the user has installed is kept.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    presses = 0

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        stop()
        ours = frame is not None and str(frame.f_globals.get("__name__")).startswith("xstream.")
        if presses > 1 or not ours:
            raise KeyboardInterrupt

    with interrupts_handled_by(on_interrupt):
        yield


class _ProgressReport:
    """Shows the progress of a run (`progress=True`) as commands do, and its end in one line."""

    def __init__(self, name: str) -> None:
        from xstream.console import Progress  # this imports the packages of the command line

        self._shown = Progress(name, unit="sample")

    def __call__(self, run: Run) -> None:
        rate = run.samples_per_second / 1e6
        self._shown.update(run.source_samples, note=f"{rate:,.1f} million samples/s")

    def close(self, run: Run) -> None:
        """Remove the bar and say how the run ended."""
        self._shown.__exit__(None, None, None)
        self._shown.say(repr(run))
