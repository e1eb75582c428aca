"""`Query`: a graph of sources, operators and sinks, declared as frozen data and then run.

Declaring checks as it goes: every operator sees the schemas of its inputs at once, so most mistakes
are found at the line that makes them. `validate` finds the rest before anything runs.
"""

from __future__ import annotations

import reprlib
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xstream.engine.operator import MAX_SIZE, Operator
from xstream.engine.schema import Schema, SchemaLike, schema, shortened
from xstream.errors import GraphError, SchemaError
from xstream.ops.basic import Feedback

if TYPE_CHECKING:
    from xstream.run import InitialState, Run
    from xstream.sigseg import MemoryManager
    from xstream.stream import Stream

__all__ = ["Node", "Query", "SinkRef"]


@dataclass(frozen=True, slots=True)
class Edge:
    """The output port of a node that an input port is connected to."""

    node: int
    port: int


@dataclass(frozen=True, slots=True)
class Node:
    """An operator in its place."""

    id: int
    name: str
    operator: Operator
    inputs: tuple[Edge | None, ...]
    outputs: tuple[Schema, ...]


@dataclass(frozen=True, slots=True)
class SinkRef:
    """Where a result will be: `run[out]`."""

    query: Query
    node: int

    def __repr__(self) -> str:
        return f"<sink {self.query.nodes[self.node].name}>"


class Query:
    """A graph under declaration.

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> src = q.source(xs.io.array(np.arange(8, dtype=np.float32), rate_hz=4.0, window=2))
    >>> out = src.rewindow(4).collect()
    >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
    [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]
    """

    def __init__(self, name: str = "query") -> None:
        self.name = name
        self.nodes: list[Node] = []
        self._names: Counter[str] = Counter()

    # -- declaring ---------------------------------------------------------------------------

    def source(self, operator: Operator, name: str | None = None) -> Stream:
        """A stream from a source, such as those in `xs.io`."""
        _check_operator(operator)
        if operator.ports:
            raise GraphError(f"{operator.label} is not a source: it has input ports")
        return self.add(operator, (), name)[0]

    def feedback(self, like: SchemaLike, name: str | None = None) -> Stream:
        """A stream whose origin is declared later, with `connect`: how a cycle is written."""
        operator = Feedback(declared=schema(like))
        return self._streams(self._append(operator, (None,), operator.outputs(()), name))[0]

    def add(
        self, operator: Operator, inputs: tuple[Stream, ...], name: str | None = None
    ) -> tuple[Stream, ...]:
        """Put an operator behind streams and return its output streams."""
        return self._streams(self.add_node(operator, inputs, name))

    def add_node(
        self, operator: Operator, inputs: tuple[Stream, ...], name: str | None = None
    ) -> Node:
        """Put an operator behind streams; sinks have no streams to return."""
        _check_operator(operator)
        for port, stream in enumerate(inputs):
            self._check_stream(stream, f"{operator.label}, port {operator.port_name(port)!r}")
        self._check_ports(operator, inputs)
        outputs = operator.outputs(tuple(stream.schema for stream in inputs))
        edges = tuple(Edge(stream.node, stream.port) for stream in inputs)
        return self._append(operator, edges, outputs, name)

    def connect(self, feedback: Stream, stream: Stream) -> None:
        """Close a cycle: what `stream` carries comes back as `feedback`."""
        from xstream.stream import Stream

        if not isinstance(feedback, Stream) or feedback.query is not self:
            raise GraphError(f"{feedback!r} is not a feedback of this query")
        node = self.nodes[feedback.node]
        if not isinstance(node.operator, Feedback):
            raise GraphError(f"{node.name} is not a feedback of this query")
        self._check_stream(stream, f"{node.name}, port 'in'")
        if node.inputs != (None,):
            raise GraphError(f"{node.name}, port 'in': connected already")
        if stream.schema.types != node.outputs[0].types:
            raise SchemaError(
                f"{node.name}, port 'in': declared as {node.outputs[0]}, connected to "
                f"{stream.schema}"
            )
        self.nodes[node.id] = replace(node, inputs=(Edge(stream.node, stream.port),))

    def _check_stream(self, stream: object, where: str) -> None:
        from xstream.stream import Stream

        if not isinstance(stream, Stream):
            raise GraphError(f"{where}: a stream is wanted, not {stream!r}")
        if stream.query is not self:
            raise GraphError(f"{where}: a stream of another query")

    def _check_ports(self, operator: Operator, inputs: tuple[Stream, ...]) -> None:
        wanted = len(operator.ports)
        if len(inputs) < wanted or (len(inputs) > wanted and not operator.variadic):
            raise GraphError(
                f"{operator.label} has {wanted} input ports ({', '.join(operator.ports)}) and "
                f"gets {len(inputs)} streams"
            )

    def _append(
        self,
        operator: Operator,
        edges: tuple[Edge | None, ...],
        outputs: tuple[Schema, ...],
        name: str | None,
    ) -> Node:
        if name is not None and not isinstance(name, str):
            raise GraphError(f"{operator.label}: a name is a string, not {name!r}")
        unique = name or operator.label
        if name is not None and name in self._names:
            raise GraphError(f"two operators are called {name!r}")
        while unique in self._names:
            self._names[operator.label] += 1
            unique = f"{operator.label} {self._names[operator.label]}"
        self._names[unique] += 1
        node = Node(len(self.nodes), unique, operator, edges, outputs)
        self.nodes.append(node)
        return node

    def _streams(self, node: Node) -> tuple[Stream, ...]:
        from xstream.stream import Stream

        return tuple(Stream(self, node.id, port) for port in range(len(node.outputs)))

    # -- checking and showing ----------------------------------------------------------------

    def validate(self) -> None:
        """Raise a GraphError for what would not run: no source, open ports, unused operators."""
        if not any(not node.operator.ports for node in self.nodes):
            raise GraphError(f"{self.name} has no source")
        used = {edge.node for node in self.nodes for edge in node.inputs if edge is not None}
        for node in self.nodes:
            for port, edge in enumerate(node.inputs):
                if edge is None:
                    where = node.operator.port_name(port)
                    raise GraphError(f"{node.name}, port {where!r}: not connected")
            if node.outputs and node.id not in used:
                raise GraphError(
                    f"{node.name}, output: nothing takes its tuples; end it with a sink such as "
                    ".collect() or .count()"
                )

    def schema_of(self, edge: Edge) -> Schema:
        """What an output port carries."""
        return self.nodes[edge.node].outputs[edge.port]

    def to_dot(self) -> str:
        """The graph in Graphviz's language: `dot -Tsvg` draws it.

        An edge names its first fields; the whole schema is its tooltip.
        """
        from xstream.drawing import dot

        return dot(self)

    def __repr__(self) -> str:
        return f"<Query {self.name}: {len(self.nodes)} operators>"

    # -- running -----------------------------------------------------------------------------

    def run(
        self,
        scheduler: str = "df",
        memory: str | MemoryManager = "refcount-lazy",
        tuple_burst: int | None = 64,
        *,
        slice_us: float | None = None,
        progress: bool | Callable[[Run], None] = False,
        stop: threading.Event | None = None,
        profile: bool = False,
        state: InitialState | None = None,
        debug: bool | None = None,
    ) -> Run:
        """Run to the end of the sources and return results and statistics.

        `scheduler` is fifo, fifo-slice (with `slice_us`), rtc or df. `tuple_burst` is rate
        control: at most so many tuples from each source, then everything runs to completion, then
        again; None lets everything in that has arrived. Setting `stop` from another thread, or
        Ctrl-C, ends the run with the results so far. With `profile`, every tuple is timed and
        `run.costs` says what each operator made the memory manager do; the run takes longer.
        `state` is what kernels begin with instead of what they declare, by the streams that come
        from them or by the operators' names: what `run.state` of an earlier run said. With
        `debug`, kernels and the helpers that they call are compiled with checks: an index out of
        bounds or a division by zero is an OperatorError that names operator, tuple and index; the
        run takes longer, and its results are the same. None: as the environment variable
        XSTREAM_DEBUG says (1: on).
        """
        from xstream.run import Run
        from xstream.sched import scheduler as scheduler_named
        from xstream.sigseg import MemoryManager, memory_manager

        self.validate()
        _check_options(tuple_burst, progress, stop, state)
        manager = memory if isinstance(memory, MemoryManager) else memory_manager(memory)
        scheduled = scheduler_named(scheduler, slice_us)
        run = Run(self, scheduled, manager, tuple_burst, profile, state, debug)
        run.execute(progress=progress, stop=stop)
        return run


def _check_operator(operator: object) -> None:
    if not isinstance(operator, Operator):
        raise GraphError(
            f"an operator is wanted, such as xs.io.array(samples), not {reprlib.repr(operator)}"
        )


def _check_options(tuple_burst: object, progress: object, stop: object, state: object) -> None:
    """A GraphError for options of a run that are of no use."""
    whole = isinstance(tuple_burst, int) and not isinstance(tuple_burst, bool)
    if tuple_burst is not None and not (whole and 1 <= tuple_burst <= MAX_SIZE):  # type: ignore[operator]
        raise GraphError(
            f"tuple_burst is a positive number of tuples, at most {MAX_SIZE}, or None, not "
            f"{shortened(tuple_burst)}"
        )
    if not isinstance(progress, bool) and not callable(progress):
        raise GraphError(f"progress is True, False or a function of the run, not {progress!r}")
    if stop is not None and not callable(getattr(stop, "is_set", None)):
        raise GraphError(f"stop is a threading.Event, not {stop!r}")
    if state is not None and not isinstance(state, Mapping):
        raise GraphError(f"state is a dictionary by the names of operators, not {state!r}")
