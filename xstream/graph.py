"""`Graph`: sources, operators and sinks as immutable data, and the edges between them.

Declarations are checked immediately: every operator knows the schemas of its inputs, so most errors
are raised by the line that causes them. `validate` finds the rest before a run.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from dataclasses import dataclass, replace
from typing import Protocol

from xstream.engine.operator import Operator
from xstream.engine.schema import Schema
from xstream.errors import GraphError, SchemaError
from xstream.ops.basic import Feedback
from xstream.ops.relation import Relation, Use

__all__ = [
    "Edge",
    "Graph",
    "Node",
    "Port",
    "RelationRef",
    "SinkRef",
    "WriteTarget",
    "check_operator",
]


@dataclass(frozen=True, slots=True)
class Edge:
    """The output port of a node that an input port is connected to."""

    node: int
    port: int


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of a graph, with its edges."""

    id: int
    name: str
    operator: Operator
    inputs: tuple[Edge | None, ...]
    outputs: tuple[Schema, ...]


@dataclass(frozen=True, slots=True)
class SinkRef:
    """The handle of a result: `run[out]`."""

    query: Graph
    node: int

    def __repr__(self) -> str:
        return f"<sink {self.query.nodes[self.node].name}>"


@dataclass(frozen=True, slots=True)
class RelationRef:
    """A relation of a query, for `update` and `lookup`; `run[relation]` is what it holds."""

    query: Graph
    node: int

    def __repr__(self) -> str:
        return f"<relation {self.query.nodes[self.node].name}>"


@dataclass(frozen=True, slots=True, eq=False)
class Port:
    """An output port of an operator in a graph."""

    query: Graph
    node: int
    port: int

    @property
    def schema(self) -> Schema:
        """The schema of its tuples.

        >>> import xstream as xs
        >>> str(xs.Query().source(xs.io.array([1.0, 2.0], window=2)).mean().schema)
        'float64'
        """
        return self.query.nodes[self.node].outputs[self.port]


class Graph:
    """Operators and the edges between them, checked as they are added."""

    def __init__(self, name: str = "query") -> None:
        self.name = name
        self.nodes: list[Node] = []
        self._names: Counter[str] = Counter()

    def add_node(
        self, operator: Operator, inputs: tuple[Port, ...], name: str | None = None
    ) -> Node:
        """Add an operator that takes streams, and return its node.

        The methods of streams call it. For an operator that has none:

        >>> import xstream as xs
        >>> from xstream.ops.basic import Count
        >>> query = xs.Query()
        >>> means = query.source(xs.io.array([1.0, 2.0], window=2)).mean()
        >>> query.add_node(Count(), (means,), "means").name
        'means'
        """
        check_operator(operator)
        for port, stream in enumerate(inputs):
            self._check_stream(stream, f"{operator.label}, port {operator.port_name(port)!r}")
        self._check_ports(operator, inputs)
        outputs = operator.outputs(tuple(stream.schema for stream in inputs))
        edges = tuple(Edge(stream.node, stream.port) for stream in inputs)
        return self.append(operator, edges, outputs, name)

    def connect(self, feedback: Port, stream: Port) -> None:
        """Close a cycle: the tuples of `stream` are the tuples of `feedback`."""
        if not isinstance(feedback, Port) or feedback.query is not self:
            raise GraphError(f"{feedback!r} is not a feedback of this query")
        node = self.nodes[feedback.node]
        if not isinstance(node.operator, Feedback):
            raise GraphError(f"{node.name} is not a feedback of this query")
        self._check_stream(stream, f"{node.name}, port 'in'")
        if node.inputs != (None,):
            raise GraphError(f"{node.name}, port 'in': already connected")
        if stream.schema.types != node.outputs[0].types:
            raise SchemaError(
                f"{node.name}, port 'in': declared as {node.outputs[0]}, connected to "
                f"{stream.schema}"
            )
        self.nodes[node.id] = replace(node, inputs=(Edge(stream.node, stream.port),))

    def use_relation(self, relation: RelationRef, use: Use, stream: Port) -> int:
        """Connect a stream to a relation, which gets one more port; its number.

        `stream.lookup` and `stream.update` call it.

        >>> import xstream as xs
        >>> from xstream.ops.relation import Lookup
        >>> query = xs.Query()
        >>> limits = query.relation("limits", {"road": int, "mph": float}, key="road")
        >>> roads = query.source(xs.io.iterable([1, 2], out={"road": int}))
        >>> query.use_relation(limits, Lookup(None), roads)
        0
        """
        if not isinstance(relation, RelationRef) or relation.query is not self:
            raise GraphError(f"{relation!r} is not a relation of this query")
        node = self.nodes[relation.node]
        assert isinstance(node.operator, Relation)
        self._check_stream(stream, f"{node.name}, {type(use).__name__.lower()}")
        inputs = (*node.inputs, Edge(stream.node, stream.port))
        operator = node.operator.used(use)
        streams = tuple(self.schema_of(edge) for edge in inputs if edge is not None)
        outputs = operator.outputs(streams)
        self.nodes[node.id] = replace(node, operator=operator, inputs=inputs, outputs=outputs)
        return len(inputs) - 1

    def _check_relations(self) -> None:
        """No stream leads from a relation back to it: its uses would have no defined order."""
        behind: dict[int, list[int]] = {}
        for node in self.nodes:
            for edge in node.inputs:
                if edge is not None:
                    behind.setdefault(edge.node, []).append(node.id)
        for node in self.nodes:
            if not isinstance(node.operator, Relation):
                continue
            seen: set[int] = set()
            waiting = list(behind.get(node.id, ()))
            while waiting:
                following = waiting.pop()
                if following == node.id:
                    raise GraphError(
                        f"{node.name}: a stream that comes from the relation leads back to it: "
                        "change and read it in one place, with update(..., returning=...)"
                    )
                if following not in seen:
                    seen.add(following)
                    waiting += behind.get(following, ())

    def _check_stream(self, stream: object, where: str) -> None:
        if not isinstance(stream, Port):
            raise GraphError(f"{where}: expected a stream, not {stream!r}")
        if stream.query is not self:
            raise GraphError(f"{where}: a stream of another query")

    def _check_ports(self, operator: Operator, inputs: tuple[Port, ...]) -> None:
        wanted = len(operator.ports)
        if len(inputs) < wanted or (len(inputs) > wanted and not operator.variadic):
            raise GraphError(
                f"{operator.label} has {wanted} input ports ({', '.join(operator.ports)}), not "
                f"{len(inputs)}"
            )

    def append(
        self,
        operator: Operator,
        edges: tuple[Edge | None, ...],
        outputs: tuple[Schema, ...],
        name: str | None,
    ) -> Node:
        """Add an operator that takes output ports, or None for one that is declared later.

        >>> import xstream as xs
        >>> query = xs.Query()
        >>> source = xs.io.array([1.0, 2.0], window=2)
        >>> node = query.append(source, (), source.outputs(()), "two")
        >>> node.name, len(query.nodes)
        ('two', 1)
        """
        if name is not None and not isinstance(name, str):
            raise GraphError(f"{operator.label}: a name must be a string, not {name!r}")
        unique = name or operator.label
        if name is not None and name in self._names:
            raise GraphError(f"two operators are named {name!r}")
        while unique in self._names:
            self._names[operator.label] += 1
            unique = f"{operator.label} {self._names[operator.label]}"
        self._names[unique] += 1
        node = Node(len(self.nodes), unique, operator, edges, outputs)
        self.nodes.append(node)
        return node

    def validate(self) -> None:
        """Raise a GraphError for a missing source, unconnected ports or unused operators.

        >>> import xstream as xs
        >>> xs.Query("empty").validate()
        Traceback (most recent call last):
        xstream.errors.GraphError: empty has no source
        """
        if not any(not node.operator.ports for node in self.nodes):
            raise GraphError(f"{self.name} has no source")
        used = {edge.node for node in self.nodes for edge in node.inputs if edge is not None}
        for node in self.nodes:
            for port, edge in enumerate(node.inputs):
                if edge is None:
                    where = node.operator.port_name(port)
                    raise GraphError(f"{node.name}, port {where!r}: not connected")
            if node.outputs and node.id not in used and not node.operator.outputs_optional:
                raise GraphError(
                    f"{node.name}, output: its tuples are not used; add a sink such as "
                    ".collect() or .count()"
                )
        self._check_relations()

    def schema_of(self, edge: Edge) -> Schema:
        """Return the schema of an output port.

        >>> import xstream as xs
        >>> query = xs.Query()
        >>> out = query.source(xs.io.array([1.0, 2.0], window=2)).mean().count()
        >>> [str(query.schema_of(edge)) for edge in query.nodes[-1].inputs]
        ['float64']
        """
        return self.nodes[edge.node].outputs[edge.port]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {len(self.nodes)} operators>"


def check_operator(operator: object) -> None:
    """Raise a GraphError if the argument is not an operator."""
    if not isinstance(operator, Operator):
        raise GraphError(
            f"expected an operator such as xs.io.array(samples), not {reprlib.repr(operator)}"
        )


class WriteTarget(Protocol):
    """Something that a stream can be written to."""

    def sink_operator(self) -> Operator:
        """The operator that takes the tuples."""
