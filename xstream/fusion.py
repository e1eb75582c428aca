"""Fusion: which operators of a query are compiled into one function, and what stands for them in a
plan.

A region is a chain of operators, each the only consumer of the one before, that all have a `Stage`.
Its members are operators of the plan like any others, with their states and arguments, but nothing
is connected to them: tuples go to the region, and it passes on what leaves the last member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xstream._native import ffi, lib
from xstream.engine._python import PythonSource
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator
from xstream.engine.schema import Schema, Segment
from xstream.graph import Graph, Node
from xstream.kernels._region import CompiledRegion, compile_region
from xstream.kernels.stage import Stage

__all__ = ["MAX_MEMBERS", "Regions", "SingleTuple", "chains"]

#: The most operators in a region: what compiles together takes longer than its parts.
MAX_MEMBERS = 16


def chains(graph: Graph, threads: int = 1) -> list[tuple[int, ...]]:
    """The regions of a graph: the numbers of their operators, in order.

    With several threads, operators with state and those without are in different regions, so that
    the latter can run on any thread.
    """
    fed = Counter(edge.node for node in graph.nodes for edge in node.inputs if edge is not None)
    stages = {node.id: stage for node in graph.nodes if (stage := _stage(graph, node)) is not None}
    before = {
        node.id: edge.node
        for node in graph.nodes
        if node.id in stages and (edge := node.inputs[0]) is not None
        if edge.node in stages and fed[edge.node] == 1
    }
    after = {first: second for second, first in before.items()}
    batched = _batched(graph, stages)
    found = []
    for head in sorted(stages.keys() - before.keys()):
        chain = [head]
        while chain[-1] in after:
            chain.append(after[chain[-1]])
        parts = _parts(chain, stages, threads > 1)
        found += [
            part
            for part in parts
            if _worthwhile([stages[node] for node in part], part[0] in batched)
        ]
    return found


def _batched(graph: Graph, stages: Mapping[int, Stage]) -> set[int]:
    """The operators that receive batches of tuples of numbers, which a region processes at once."""
    waiting = [node.id for node in graph.nodes if node.operator.batches]
    if not waiting:
        return set()
    fed: dict[int, list[int]] = {}
    for node in graph.nodes:
        for edge in node.inputs:
            if edge is not None:
                fed.setdefault(edge.node, []).append(node.id)
    found: set[int] = set()
    while waiting:
        for taker in fed.get(waiting.pop(), ()):
            if taker not in found:
                found.add(taker)
                if taker in stages or graph.nodes[taker].operator.relays_batches:
                    waiting.append(taker)
    return {number for number in found if number in stages and _numbers(stages[number].inputs)}


def _numbers(schema: Schema) -> bool:
    return not any(isinstance(type_, Segment) for type_ in schema.types)


def _parts(chain: list[int], stages: Mapping[int, Stage], by_state: bool) -> list[tuple[int, ...]]:
    """A chain in pieces that can be compiled together."""
    parts: list[list[int]] = [[]]
    shared = False
    for before, node in zip([chain[0], *chain], chain, strict=False):
        shares = stages[node].shares_out
        apart = by_state and stages[before].stateless != stages[node].stateless
        if len(parts[-1]) == MAX_MEMBERS or (shares and shared) or apart:
            parts.append([])
            shared = False
        parts[-1].append(node)
        shared = shared or shares
    return [tuple(part) for part in parts]


def _stage(graph: Graph, node: Node) -> Stage | None:
    if len(node.inputs) != 1 or len(node.outputs) > 1 or node.inputs[0] is None:
        return None
    found: Stage | None = node.operator.stage(graph.schema_of(node.inputs[0]))
    return found


def _worthwhile(stages: Sequence[Stage], batched: bool) -> bool:
    """Two kernels, or one whose tuples are only counted or come in batches.

    The core passes the rest as fast.
    """
    kernels = sum(stage.kind == "kernel" for stage in stages)
    return kernels > 1 or (kernels == 1 and (batched or stages[-1].kind == "count"))


class Regions:
    """The regions of a run: what stands for their members in its plan."""

    def __init__(self, graph: Graph, found: Sequence[tuple[int, ...]]) -> None:
        self.graph = graph
        compiled = [(chain, _compiled(graph, chain)) for chain in found]
        self.members = [chain for chain, code in compiled if code is not None]
        self.codes = [code for _, code in compiled if code is not None]
        #: By operator: the number of its region, and its place in there.
        self.places = {
            node: (number, place)
            for number, chain in enumerate(self.members)
            for place, node in enumerate(chain)
        }
        self.ops: list[Any] = []

    def create(self, plan: NativePlan, ops: Sequence[Any]) -> None:
        """Add the regions to a plan; `ops` are the operators of all nodes."""
        for chain, code in zip(self.members, self.codes, strict=True):
            op = _create(plan, code, [ops[node] for node in chain])
            plan.shape(op, (code.stages[0].inputs,), self.graph.nodes[chain[-1]].outputs)
            self.ops.append(op)

    def entry(self, node: int, op: Any) -> Any:
        """What the tuples for an operator are sent to."""
        number, _ = self.places.get(node, (-1, 0))
        return op if number < 0 else self.ops[number]

    exit = entry

    def joined(self, first: int, second: int) -> bool:
        """Whether two operators, of which one feeds the other, are in one region."""
        return self.places.get(first, (-1,))[0] == self.places.get(second, (-2,))[0]

    def stats(self, node: int) -> Any | None:
        """What a member counted; None for an operator that is in no region."""
        if node not in self.places:
            return None
        number, place = self.places[node]
        native = ffi.new("xs_op_stats *")
        lib.xs_region_stats(self.ops[number], place, native)
        return native

    def head_of(self, op: Any) -> int | None:
        """The first operator of the region that an operator of the plan is."""
        return next(
            (chain[0] for chain, own in zip(self.members, self.ops, strict=True) if own == op), None
        )

    def rerun(self, node: int) -> tuple[int, ...]:
        """The operators, from this one on, that must run alone to tell who failed; often none."""
        if node not in self.places:
            return ()
        number, place = self.places[node]
        if not lib.xs_region_rerun(self.ops[number]):
            return ()
        return self.members[number][place:]


@dataclass(frozen=True, eq=False)
class SingleTuple(Operator):
    """A source of one tuple, with which a chain of operators is run again."""

    kind = "tuple"
    ports = ()
    schema: Schema
    values: tuple[Any, ...]

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        """What the tuple is."""
        return (self.schema,)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        """Add the source to a plan."""
        value = self.values[0] if len(self.values) == 1 else self.values
        return PythonSource(plan, iter([value]), self.schema, self.label).op


def _compiled(graph: Graph, chain: Sequence[int]) -> CompiledRegion | None:
    stages = [_stage(graph, graph.nodes[node]) for node in chain]
    return compile_region(tuple(stage for stage in stages if stage is not None))


def _create(plan: NativePlan, code: CompiledRegion, members: Sequence[Any]) -> Any:
    plan.keep(code)
    op = checked(
        lib.xs_op_region(
            plan.handle, code.address, code.words, code.outputs_at, code.members_at, len(members)
        )
    )
    for i, (stage, member) in enumerate(zip(code.stages, members, strict=True)):
        sizes = stage.itemsizes if stage.code is not None else ()
        lib.xs_region_member(op, i, member, len(sizes), ffi.new("int64_t[]", sizes or 1))
    for field, (itemsize, origin) in enumerate(code.outputs):
        lib.xs_region_output(op, field, itemsize, origin)
    lib.xs_region_uses(op, code.used, code.walked)
    return op
