"""`Stream`: an output port of a query under declaration, with the operators as methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xstream.ops.apply import Sink, apply
from xstream.ops.basic import Collect, Count, Merge, Pass
from xstream.ops.kernel import Kernel
from xstream.ops.operator import Operator
from xstream.ops.schema import Schema, SchemaLike
from xstream.query import Query, SinkRef

__all__ = ["Stream"]


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """What comes out of an operator. Methods add an operator behind it."""

    query: Query
    node: int
    port: int

    @property
    def schema(self) -> Schema:
        """What its tuples carry."""
        return self.query.nodes[self.node].outputs[self.port]

    def then(self, operator: Operator, *others: Stream, name: str | None = None) -> Stream:
        """Put any operator with one output behind this stream (and others)."""
        return self.query.add(operator, (self, *others), name)[0]

    def __repr__(self) -> str:
        return f"<Stream of {self.schema} from {self.query.nodes[self.node].name}>"

    # -- the user's own functions ------------------------------------------------------------

    def map(
        self,
        function: Kernel | Callable[..., Any],
        *arguments: Any,
        out: SchemaLike = None,
        name: str | None = None,
    ) -> Stream:
        """One tuple out for each tuple in. A plain callable says what it returns with `out=`."""
        return self.then(apply("map", function, arguments, out), name=name)

    def filter(
        self, function: Kernel | Callable[..., Any], *arguments: Any, name: str | None = None
    ) -> Stream:
        """The tuples for which the function is true."""
        return self.then(apply("filter", function, arguments, None), name=name)

    def iterate(
        self,
        function: Kernel | Callable[..., Any],
        *arguments: Any,
        out: SchemaLike = None,
        name: str | None = None,
    ) -> Stream:
        """Nought to many tuples out for each tuple in.

        A kernel emits through `out.emit(...)` and keeps its `state`; a plain callable returns an
        iterable of tuples, or is a generator.
        """
        return self.then(apply("iterate", function, arguments, out), name=name)

    # -- putting streams together ------------------------------------------------------------

    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        """Tuples of this and other streams of the same schema, as they come."""
        return self.then(Merge(), *others, name=name)

    def passed(self, name: str | None = None) -> Stream:
        """The same tuples, through an operator that does nothing: for measurements."""
        return self.then(Pass(), name=name)

    # -- sinks -------------------------------------------------------------------------------

    def collect(self, name: str | None = None) -> SinkRef:
        """Keep every tuple: `run[out]` is a list."""
        return self._sink(Collect(), name)

    def count(self, name: str | None = None) -> SinkRef:
        """Count: `run[out]` is the number of tuples, and `run[out].samples` that of samples."""
        return self._sink(Count(), name)

    def sink(self, function: Callable[..., Any], name: str | None = None) -> SinkRef:
        """Call a plain Python function with every tuple."""
        label = getattr(function, "__name__", type(function).__name__)
        return self._sink(Sink("sink", label, function=function), name)

    def _sink(self, operator: Operator, name: str | None) -> SinkRef:
        return SinkRef(self.query, self.query.add_node(operator, (self,), name).id)
