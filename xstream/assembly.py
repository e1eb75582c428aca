"""`Assembly`: a query as a plan of the C core, with its operators, kernel states and positions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from xstream._native import ffi, lib
from xstream.engine.attachment import Counting, Flushing, Position, Resumable, Unrepeatable
from xstream.engine.native import NativePlan, read_slots
from xstream.engine.schema import Schema
from xstream.errors import GraphError, InputError, SegmentMemoryError
from xstream.fusion import Regions, chains
from xstream.graph import Graph, Node
from xstream.kernels.apply import KernelApply
from xstream.sched import Scheduler
from xstream.sigseg import MemoryManager
from xstream.snapshot import Edge, Snapshot
from xstream.statistics import (
    Delays,
    OperatorCost,
    OperatorStats,
    read_cost,
    read_delays,
    read_stats,
)
from xstream.stream import Stream

__all__ = ["Assembly", "InitialState", "KernelState", "NodeHandle", "Positions"]

#: The arrays that a kernel keeps between calls, by name.
KernelState = Mapping[str, NDArray[Any]]

#: Initial states of kernels, by the names of operators or by their streams.
InitialState = Mapping[str, KernelState] | Mapping[Stream, KernelState]

#: Positions at which sources and sinks begin, by the names of operators.
Positions = Mapping[str, Position]


class NodeHandle(Protocol):
    """The handle of an operator: a stream that comes from it, or a sink."""

    @property
    def query(self) -> Graph:
        """The query."""

    @property
    def node(self) -> int:
        """The number of the operator."""


class Assembly:
    """The operators of a query in the C core, connected to a plan."""

    def __init__(
        self, query: Graph, scheduler: Scheduler, manager: MemoryManager, debug: bool | None
    ) -> None:
        self.query, self.scheduler, self.manager = query, scheduler, manager
        self.nodes = tuple(query.nodes)
        self._named = {node.name: node for node in self.nodes}
        self.plan = NativePlan(manager, debug)
        self.regions = Regions(query, ())
        self.ops: list[Any] = []
        #: What the operators had counted at the checkpoint from which the run goes on (`counted`).
        self.earlier: NDArray[np.int64] | None = None

    def build(self, tuple_burst: int | None, fuse: bool, profile: bool, threads: int = 1) -> None:
        """Compile the kernels, create the operators and connect them.

        With `fuse`, chains of kernels become regions if the scheduler and the manager allow it.
        """
        if fuse and not profile and self._can_fuse():
            self.regions = Regions(self.query, chains(self.query, threads))
        self.ops = [self._create(node) for node in self.nodes]
        self.regions.create(self.plan, self.ops)
        for node in self.nodes:
            self._connect(node)
        status = lib.xs_plan_prepare(
            self.plan.handle, self.scheduler.native, tuple_burst or 0,
            int(self.scheduler.slice_us * 1000),
        )  # fmt: skip
        if status:
            raise SegmentMemoryError("no memory is left for the query")
        if profile and lib.xs_plan_profile(self.plan.handle):
            raise SegmentMemoryError("no memory is left to profile the query")

    def _can_fuse(self) -> bool:
        """Regions need direct calls, and segments that are passed without a copy."""
        direct = self.scheduler.native == lib.XS_DF
        return direct and not self.plan.debug and self.manager.name != "copy-always"

    def _create(self, node: Node) -> Any:
        inputs = tuple(self.query.schema_of(edge) for edge in node.inputs if edge is not None)
        operator, fused = node.operator, node.id in self.regions.places
        create = operator.create_member if fused else operator.create
        op = create(self.plan, inputs, node.outputs)
        self.plan.shape(op, inputs, node.outputs)
        return op

    def _connect(self, node: Node) -> None:
        regions, ops = self.regions, self.ops
        for port, edge in enumerate(node.inputs):
            if edge is not None and not regions.joined(edge.node, node.id):
                origin = regions.exit(edge.node, ops[edge.node])
                self.plan.connect(origin, edge.port, regions.entry(node.id, ops[node.id]), port)

    # -- states and positions ----------------------------------------------------------------

    def restore(self, state: InitialState) -> None:
        """Set the initial states of kernels; one operator's arrays are held at a time."""
        for which, arrays in state.items():
            node = self.node(which)
            operator, inputs = self._kernel(node)
            operator.write_state(self.ops[node.id], inputs, arrays)

    def state(self, which: str | NodeHandle) -> dict[str, NDArray[Any]]:
        """Return a copy of the state of a kernel."""
        node = self.node(which)
        operator, inputs = self._kernel(node)
        return operator.read_state(self.ops[node.id], inputs)

    def _kernel(self, node: Node) -> tuple[KernelApply, Schema]:
        """A node's kernel and its input schema; an error if the node is not a kernel."""
        edge = node.inputs[0] if node.inputs else None
        if not isinstance(node.operator, KernelApply) or edge is None:
            raise GraphError(f"{node.name} is not a kernel: it keeps no state that can be had")
        return node.operator, self.query.schema_of(edge)

    def resume(self, positions: Positions) -> None:
        """Start sources and sinks at the positions of an earlier run."""
        for name, position in positions.items():
            attachment = self.plan.attachment(self.ops[self.node(name).id])
            if not isinstance(attachment, Resumable):
                why = f": {attachment.guarantee}" if isinstance(attachment, Unrepeatable) else ""
                raise GraphError(f"{name} has no position to begin at{why}")
            try:
                attachment.restore(position)
            except InputError as error:
                raise InputError(f"{name}: {error}") from error

    def positions(self) -> dict[str, Position]:
        """The positions of the sources and sinks that support them, by the names of operators."""
        owners = {op: node.name for node, op in zip(self.nodes, self.ops, strict=True)}
        attached = [
            (owners[op], what)
            for op, what in self.plan.attached
            if op in owners and isinstance(what, Resumable)
        ]
        for _, what in attached:
            if isinstance(what, Flushing):
                what.ask()
        return {name: what.position() for name, what in attached}

    # -- looking things up -------------------------------------------------------------------

    def node(self, which: str | NodeHandle) -> Node:
        """The operator of a name, or the one that a stream comes from."""
        if not isinstance(which, str):
            if which.query is not self.query:
                raise GraphError(f"{which!r} belongs to another query")
            return self.nodes[which.node]
        if which not in self._named:
            raise GraphError(f"{which!r} is no operator of {self.query!r}")
        return self._named[which]

    def node_of(self, op: Any) -> Node:
        """The node of an operator of the core; the first of its region if it is one."""
        head = self.regions.head_of(op)
        if head is not None:
            return self.nodes[head]
        return next(node for node in self.nodes if self.ops[node.id] == op)

    def part(self, node: Node) -> int:
        """The number of the thread that runs an operator."""
        return int(lib.xs_op_part(self.regions.entry(node.id, self.ops[node.id])))

    def stats(self, node: Node) -> OperatorStats:
        """The statistics of an operator."""
        op = self.ops[node.id]
        found = read_stats(op, self.regions.stats(node.id), self.plan.attachment(op))
        return found if self.earlier is None else found.after(self.earlier[node.id].tolist())

    def counted(self) -> NDArray[np.int64]:
        """The counters of all operators, one row for each."""
        found = np.zeros((len(self.ops), 5), np.int64)
        ops = ffi.new("xs_op *[]", self.ops)
        lib.xs_ops_counters(ops, len(self.ops), ffi.cast("int64_t *", found.ctypes.data))
        for number in self.regions.places:
            native = self.regions.stats(number)
            assert native is not None
            found[number] = (
                native.tuples, native.samples, native.emitted, native.busy_ns, native.dropped
            )  # fmt: skip
        return found if self.earlier is None else found + self.earlier

    def snapshot(self, wall_s: float, phase: str, threads: int) -> Snapshot:
        """All counters, read while other threads may run the plan."""
        reader = self._reader
        counters, waiting = reader.read()
        for number in self.regions.places:
            native = self.regions.stats(number)
            assert native is not None
            counters[number] = (
                native.tuples, native.samples, native.emitted, native.busy_ns, native.dropped,
                native.queue_peak,
            )  # fmt: skip
        if self.earlier is not None:
            counters[:, : self.earlier.shape[1]] += self.earlier
        rings = ffi.new("double[]", threads)
        lib.xs_plan_rings(self.plan.handle, rings)
        lateness: dict[str, Delays] = {}
        latency: dict[str, Delays] = {}
        network: dict[str, Mapping[str, int]] = {}
        for node, op in zip(self.nodes, self.ops, strict=True):
            if not node.operator.ports:
                late, whole = read_delays(op)
                lateness |= {node.name: late} if late is not None else {}
                latency |= {node.name: whole} if whole is not None else {}
        for number, attachment in reader.counting:
            network[self.nodes[number].name] = dict(attachment.counters())
        return Snapshot(
            wall_s, phase, reader.names, reader.edges, counters, waiting,
            tuple(rings[part] for part in range(threads - 1)),
            tuple(self.part(node) for node in self.nodes) if threads > 1 else (0,) * len(self.ops),
            self.manager.stats(), int(lib.xs_plan_queue_bytes(self.plan.handle)), lateness,
            latency, network,
        )  # fmt: skip

    @cached_property
    def _reader(self) -> _Reader:
        return _Reader(self)

    def cost(self, node: Node) -> OperatorCost:
        """The costs of an operator in the memory manager."""
        return read_cost(self.ops[node.id])

    def collected(self, node: Node) -> list[Any]:
        """The tuples that a `collect` has kept."""
        op, edge = self.ops[node.id], node.inputs[0]
        assert edge is not None
        schema = self.query.schema_of(edge)
        signals = self.plan.signals(schema)
        rows = (
            read_slots(lib.xs_collected_tuple(op, i), schema, signals)
            for i in range(lib.xs_collected(op))
        )
        return [row[0] for row in rows] if len(schema) == 1 else list(rows)


class _Reader:
    """Reads the counters of all operators and queues, in two calls of the core."""

    def __init__(self, built: Assembly) -> None:
        self.names = tuple(node.name for node in built.nodes)
        self.edges = tuple(
            Edge(edge.node, node.id, port)
            for node in built.nodes
            for port, edge in enumerate(node.inputs)
            if edge is not None
        )
        regions, ops = built.regions, built.ops
        heads = [regions.entry(edge.target, ops[edge.target]) for edge in self.edges]
        queued = [
            0 if regions.joined(edge.origin, edge.target) else edge.port for edge in self.edges
        ]
        self._ops = ffi.new("xs_op *[]", ops)
        self._heads = ffi.new("xs_op *[]", heads)
        self._ports = ffi.new("int32_t[]", queued)
        #: Edges within a region have no queue.
        self._inside = [
            number
            for number, edge in enumerate(self.edges)
            if regions.joined(edge.origin, edge.target)
        ]
        numbers = {op: number for number, op in enumerate(ops)}
        self.counting = [
            (numbers[op], attachment)
            for op, attachment in built.plan.attached
            if op in numbers and isinstance(attachment, Counting)
        ]

    def read(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The counters of the operators, and the tuples that wait at each edge."""
        counters = np.zeros((len(self.names), lib.XS_SNAPSHOT_COLUMNS), np.int64)
        waiting = np.zeros(len(self.edges), np.int64)
        lib.xs_ops_snapshot(self._ops, len(self.names), ffi.cast("int64_t *", counters.ctypes.data))
        lib.xs_ports_waiting(
            self._heads, self._ports, len(self.edges), ffi.cast("int64_t *", waiting.ctypes.data)
        )
        waiting[self._inside] = 0
        return counters, waiting
