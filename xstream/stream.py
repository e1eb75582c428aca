"""`Stream`: an output port of a query under declaration, with the operators as methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xstream.engine.operator import Operator
from xstream.engine.schema import SchemaLike
from xstream.errors import GraphError
from xstream.graph import Port, RelationRef, SinkRef, WriteTarget
from xstream.kernels.apply import Sink, apply
from xstream.kernels.kernel import Kernel
from xstream.ops.basic import Collect, Count, Merge, Ordered, Pass
from xstream.ops.deinterleave import Deinterleave
from xstream.ops.flow_methods import FlowMethods
from xstream.ops.gate import Gate
from xstream.ops.join import Join
from xstream.ops.partition import Divide
from xstream.ops.relation import Lookup, Update, assignments, names_of
from xstream.ops.select import Select
from xstream.ops.signal_methods import SignalMethods
from xstream.ops.sync import Sync
from xstream.ops.union import Union
from xstream.ops.zip import Zip
from xstream.partition import Partition

__all__ = ["Stream"]


@dataclass(frozen=True, slots=True, eq=False)
class Stream(Port, FlowMethods, SignalMethods):
    """An output of an operator. Every method adds an operator that takes its tuples."""

    def then(self, operator: Operator, *others: Stream, name: str | None = None) -> Stream:
        """Add any operator with one output that takes this stream (and others).

        >>> import xstream as xs
        >>> from xstream.ops.basic import Pass
        >>> q = xs.Query()
        >>> out = q.source(xs.io.iterable([1, 2], out=int)).then(Pass()).collect()
        >>> q.run()[out]
        [1, 2]
        """
        return self._behind(operator, (self, *others), name)[0]

    def _behind(
        self, operator: Operator, inputs: tuple[Stream, ...], name: str | None
    ) -> tuple[Stream, ...]:
        node = self.query.add_node(operator, inputs, name)
        return tuple(Stream(self.query, node.id, port) for port in range(len(node.outputs)))

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
        """Apply a function to every tuple. For a plain callable, `out` is what it returns.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.iterable([1.0, 2.0], out=float))
        >>> out = src.map(lambda x, factor: factor * x, 10.0, out=float).collect()
        >>> q.run()[out]
        [10.0, 20.0]
        """
        return self.then(apply("map", function, arguments, out), name=name)

    def filter(
        self, function: Kernel | Callable[..., Any], *arguments: Any, name: str | None = None
    ) -> Stream:
        """Keep the tuples for which the function is true.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.iterable([1, 2, 3], out=int)).filter(lambda n: n != 2).collect()
        >>> q.run()[out]
        [1, 3]
        """
        return self.then(apply("filter", function, arguments, None), name=name)

    def iterate(
        self,
        function: Kernel | Callable[..., Any],
        *arguments: Any,
        out: SchemaLike = None,
        name: str | None = None,
    ) -> Stream:
        """Emit zero or more tuples for each tuple.

        A kernel emits through `out.emit(...)` and keeps its `state`; a plain callable returns an
        iterable of tuples, or is a generator.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.iterable([2, 0, 3], out=int)).iterate(range, out=int).collect()
        >>> q.run()[out]
        [0, 1, 0, 1, 2]
        """
        return self.then(apply("iterate", function, arguments, out), name=name)

    # -- putting streams together ------------------------------------------------------------

    def merge(
        self, *others: Stream, by: str | None = None, tag: str | None = None,
        name: str | None = None,
    ) -> Stream:  # fmt: skip
        """Merge this and other streams of the same schema, in the order of arrival.

        `by` names an integer field that ascends in every stream, for example a time. Tuples are
        then emitted in the order of that field, each value as soon as all streams have reached it;
        for equal values, the first stream's tuples come first. `tag` names a leading field for the
        number of the stream that a tuple is from.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> fields = {"time": int, "x": float}
        >>> a = q.source(xs.io.iterable([(1, 0.1), (4, 0.4)], out=fields))
        >>> b = q.source(xs.io.iterable([(2, 0.2), (3, 0.3), (4, 0.5)], out=fields))
        >>> out = a.merge(b, by="time").collect()
        >>> q.run()[out]
        [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4), (4, 0.5)]
        """
        if by is not None:
            return self.then(Ordered(by, tag), *others, name=name)
        if tag is not None:
            raise GraphError(
                "merge: tag requires by; without by, union adds the number of the stream"
            )
        return self.then(Merge(), *others, name=name)

    def union(self, *others: Stream, name: str | None = None) -> Stream:
        """Merge streams, with a leading field `stream`: the number of each tuple's stream.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> a = q.source(xs.io.iterable([1, 2], out=int))
        >>> b = q.source(xs.io.iterable([7], out=int))
        >>> out = a.union(b).collect()
        >>> sorted(q.run()[out])
        [(0, 1), (0, 2), (1, 7)]
        """
        return self.then(Union(), *others, name=name)

    def zip(self, *others: Stream, name: str | None = None) -> Stream:
        """Combine one tuple of each stream into one with the fields of all; names are made unique.

        Streams of segments at different rates are paired by time: every window of this stream with
        the samples that each other one has at that time.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> a = q.source(xs.io.iterable([1, 2, 3], out=int))
        >>> b = q.source(xs.io.iterable([0.5, 0.25], out=float))
        >>> out = a.zip(b).collect()
        >>> q.run()[out]
        [(1, 0.5), (2, 0.25)]
        """
        return self.then(Zip(), *others, name=name)

    def select(self, *names: str, name: str | None = None) -> Stream:
        """Keep some fields of every tuple, in the order in which they are named.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.iterable([(1, 0.5)], out={"n": int, "x": float})).select("x")
        >>> out = out.collect()
        >>> q.run()[out]
        [0.5]
        """
        return self.then(Select(names), name=name)

    def gate(self, control: Stream, name: str | None = None) -> Stream:
        """Keep the samples inside the ranges of `control`: (start, stop), in the order of start.

        Control tuples may also be (keep, start, stop), as `silence` emits them; keep=False drops
        the range. Ranges of a signal at another rate select the samples at the same time.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.arange(10), window=4))
        >>> ranges = q.source(xs.io.iterable([(1, 3), (7, 9)], out=(int, int)))
        >>> out = src.gate(ranges).collect()
        >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
        [[1, 2], [7], [8]]
        """
        return self._behind(Gate(), (control, self), name)[0]

    def sync(self, *streams: Stream, flush: bool = False, name: str | None = None) -> Stream:
        """Cut the ranges that this control stream (keep, start, stop) requests out of all streams.

        Requests are served in order, each as soon as every stream covers it. keep=False discards
        the samples before `stop`, which bounds memory. Requests that are not covered when the
        streams end are dropped; with `flush`, they get the samples that are available. Streams may
        have different rates if the ranges have a timebase, as those of `threshold` do.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> asked = q.source(xs.io.iterable([(True, 1, 3), (False, 0, 4)], out=(bool, int, int)))
        >>> left = q.source(xs.io.array(np.arange(6), window=2))
        >>> right = q.source(xs.io.array(-np.arange(6), window=3))
        >>> out = asked.sync(left, right).collect()
        >>> [tuple(np.asarray(seg).tolist() for seg in row) for row in q.run()[out]]
        [([1, 2], [-1, -2])]
        """
        return self.then(Sync(flush), *streams, name=name)

    def join(
        self, other: Stream, on: str | None = None, unique: bool = False, name: str | None = None
    ) -> Stream:
        """Join tuples with the same integer key: the field `on`, or the first field of each.

        With `unique`, a key occurs once in each stream, so that joined tuples are not kept.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> left = q.source(xs.io.iterable([(1, 0.5), (2, 0.25)], out={"time": int, "x": float}))
        >>> right = q.source(xs.io.iterable([(2, 7), (3, 8)], out={"time": int, "y": int}))
        >>> out = left.join(right, on="time").collect()
        >>> q.run()[out]
        [(2, 0.25, 7)]
        """
        return self.then(Join(on, unique), other, name=name)

    # -- relations ---------------------------------------------------------------------------

    def update(
        self,
        relation: RelationRef,
        values: Mapping[str, Any] | None = None,
        *,
        key: str | Sequence[str] | None = None,
        delete: bool | str = False,
        returning: str | Sequence[str] = (),
    ) -> Stream:
        """Change the row of a relation that has the key of the tuple, and pass the tuple on.

        `values` says what each value becomes: a field of the stream or a number, or a pair of
        `"set"`, `"add"`, `"min"` or `"max"` and one of those. Without it, values take the fields of
        their names. A row that is missing is added, from zeros. `key` names the fields that are
        the key, where they are not called as in the relation. `delete=True` removes the row
        instead, and the name of a flag removes it where the flag is true. `returning` adds values
        of the row, after the change (or before it is removed), to the tuple.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> seen = q.relation("seen", {"car": int, "times": int}, key="car")
        >>> src = q.source(xs.io.iterable([7, 8, 7], out={"car": int}))
        >>> out = src.update(seen, {"times": ("add", 1)}, returning="times").collect()
        >>> q.run()[out]
        [(7, 1), (8, 1), (7, 2)]
        """
        asked = None if values is None else assignments(values)
        use = Update(names_of(key) or None, asked, delete, names_of(returning))
        port = self.query.use_relation(relation, use, self)
        return Stream(self.query, relation.node, port)

    def lookup(
        self,
        relation: RelationRef,
        fields: str | Sequence[str] | None = None,
        *,
        key: str | Sequence[str] | None = None,
        missing: str = "default",
        found: str | None = None,
    ) -> Stream:
        """Add values of the row of a relation that has the key of the tuple.

        `fields` names the values; without it all are added. Where there is no such row they are
        zero, or the tuple is dropped (`missing="drop"`), or the run fails (`"error"`). `found`
        names a flag in front of them that says whether there is one.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> fields = {"road": int, "mph": float}
        >>> limits = q.relation("limits", fields, key="road", contents=[(1, 55.0)])
        >>> src = q.source(xs.io.iterable([1, 2], out={"road": int}))
        >>> out = src.lookup(limits, "mph", found="known").collect()
        >>> q.run()[out]
        [(1, True, 55.0), (2, False, 0.0)]
        """
        wanted = None if fields is None else names_of(fields)
        use = Lookup(names_of(key) or None, wanted, missing, found)
        port = self.query.use_relation(relation, use, self)
        return Stream(self.query, relation.node, port)

    def deinterleave(self, channels: int, name: str | None = None) -> tuple[Stream, ...]:
        """Split a stream of interleaved samples into one stream for each channel.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> left, right = q.source(xs.io.array(np.arange(6), window=3)).deinterleave(2)
        >>> a, b = left.rewindow(3).collect(), right.rewindow(3).collect()
        >>> run = q.run()
        >>> np.asarray(run[a][0]).tolist(), np.asarray(run[b][0]).tolist()
        ([0, 2, 4], [1, 3, 5])
        """
        return self._behind(Deinterleave(channels), (self,), name)

    def partition(self, by: str, replicas: int, name: str | None = None) -> Partition:
        """Divide the stream by a key, so that its replicas can run on several threads.

        Tuples with equal values of the integer or boolean field `by` go to one replica. What
        `each` declares runs once per replica, with a state of its own; `merge` brings the results
        together. The number of replicas is part of the query: results do not depend on threads.

        >>> import numpy as np, xstream as xs
        >>> @xs.kernel(state=np.zeros(100), out=(int, float))
        ... def total(sensor, x, state, out):
        ...     state[sensor] += x
        ...     out.emit(sensor, state[sensor])
        >>> q = xs.Query()
        >>> readings = [(7, 1.0), (8, 10.0), (7, 2.0), (9, 5.0), (8, 20.0)]
        >>> src = q.source(xs.io.iterable(readings, out={"sensor": int, "x": float}))
        >>> parts = src.partition(by="sensor", replicas=2)
        >>> out = parts.each(lambda part: part.iterate(total)).merge().collect()
        >>> q.run(threads=2)[out]
        [(7, 1.0), (8, 10.0), (7, 3.0), (9, 5.0), (8, 30.0)]
        """
        return Partition(self._behind(Divide(by, replicas), (self,), name))

    def passed(self, name: str | None = None) -> Stream:
        """Pass tuples on unchanged; used to measure the cost of an operator.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.iterable([1, 2], out=int)).passed().collect()
        >>> q.run()[out]
        [1, 2]
        """
        return self.then(Pass(), name=name)

    # -- sinks -------------------------------------------------------------------------------

    def collect(self, name: str | None = None) -> SinkRef:
        """Keep every tuple: `run[out]` is a list.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.iterable([(1, 0.5)], out=(int, float))).collect()
        >>> q.run()[out]
        [(1, 0.5)]
        """
        return self._sink(Collect(), name)

    def count(self, name: str | None = None) -> SinkRef:
        """Count tuples and samples: `run[out]` and `run[out].samples`.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.zeros(10), window=4)).count()
        >>> run = q.run()
        >>> run[out], run[out].samples
        (3, 10)
        """
        return self._sink(Count(), name)

    def sink(self, function: Callable[..., Any], name: str | None = None) -> SinkRef:
        """Call a plain Python function with every tuple.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.iterable([(1, 0.5), (2, 0.25)], out=(int, float))).sink(print)
        >>> run = q.run()
        1 0.5
        2 0.25
        """
        if not callable(function):
            raise GraphError(f"sink requires a callable, not {function!r}")
        label = getattr(function, "__name__", type(function).__name__)
        return self._sink(Sink("sink", label, function=function), name)

    def write(self, target: WriteTarget, name: str | None = None) -> SinkRef:
        """Write every tuple to a target of `xs.io`, such as a file.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.arange(4, dtype=np.int16), window=2))
        >>> sink = src.write(xs.io.npy("written.npy"))
        >>> run = q.run()
        >>> np.load("written.npy").tolist()
        [0, 1, 2, 3]
        """
        return self._sink(target.sink_operator(), name)

    def _sink(self, operator: Operator, name: str | None) -> SinkRef:
        return SinkRef(self.query, self.query.add_node(operator, (self,), name).id)
