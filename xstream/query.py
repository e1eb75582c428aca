"""`Query`: declares a graph stream by stream, draws and runs it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from xstream.drawing import dot
from xstream.engine.operator import MAX_SIZE, Operator
from xstream.engine.schema import SchemaLike, schema, shortened
from xstream.errors import GraphError
from xstream.graph import Graph, Node, RelationRef, SinkRef, check_operator
from xstream.ops.basic import Feedback
from xstream.ops.relation import relation_operator
from xstream.picture import Picture, picture
from xstream.recovery.checkpoints import Checkpoints
from xstream.run import InitialState, Positions, Run
from xstream.sched import scheduler as scheduler_named
from xstream.sched.threads import thread_count
from xstream.sigseg import MemoryManager, memory_manager
from xstream.stream import Stream
from xstream.views import View, open_view

#: What `live=` takes: whether, a port, HOST:PORT, or a view with its options (`xs.Live`).
LiveOption = bool | int | str | View

__all__ = ["Node", "Query", "SinkRef"]


class Query(Graph):
    """A graph of operators that is declared, then run.

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> src = q.source(xs.io.array(np.arange(8, dtype=np.float32), rate_hz=4.0, window=2))
    >>> out = src.rewindow(4).collect()
    >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
    [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]
    """

    # -- declaring ---------------------------------------------------------------------------

    def source(self, operator: Operator, name: str | None = None) -> Stream:
        """Add a source, such as those in `xs.io`, and return its stream."""
        streams = self.sources(operator, name)
        if len(streams) > 1:
            raise GraphError(
                f"{operator.label} has {len(streams)} streams: use query.sources, which returns all"
            )
        return streams[0]

    def sources(self, operator: Operator, name: str | None = None) -> tuple[Stream, ...]:
        """All streams from a source, such as those of the channels of a file.

        >>> import numpy as np, xstream as xs
        >>> np.save("two.npy", np.arange(8, dtype=np.int16).reshape(4, 2))
        >>> q = xs.Query()
        >>> left, right = q.sources(xs.io.npy("two.npy", layout="streams"))
        >>> a, b = left.collect(), right.collect()
        >>> run = q.run()
        >>> np.asarray(run[a][0]).tolist(), np.asarray(run[b][0]).tolist()
        ([0, 2, 4, 6], [1, 3, 5, 7])
        """
        check_operator(operator)
        if operator.ports:
            raise GraphError(f"{operator.label} is not a source: it has input ports")
        return self.add(operator, (), name)

    def feedback(self, like: SchemaLike, name: str | None = None) -> Stream:
        """Return a stream whose origin is declared later with `connect`, for cycles.

        >>> import numpy as np, xstream as xs
        >>> query = xs.Query()
        >>> numbers = query.source(xs.io.iterable([3, 1], out=int))
        >>> smaller = query.feedback(int)
        >>> seen = numbers.merge(smaller)
        >>> positive = seen.filter(lambda n: n > 0)
        >>> query.connect(smaller, positive.map(lambda n: n - 1, out=int))
        >>> out = seen.collect()
        >>> sorted(query.run()[out])
        [0, 0, 1, 1, 2, 3]
        """
        operator = Feedback(declared=schema(like))
        return self._streams(self.append(operator, (None,), operator.outputs(()), name))[0]

    def relation(
        self,
        name: str,
        fields: SchemaLike,
        *,
        key: str | Sequence[str],
        order: str | None = None,
        contents: Any = None,
    ) -> RelationRef:
        """A keyed table that streams read with `lookup` and change with `update`.

        `fields` are int64, float64 and bool; `key` names one or more of whole numbers. `contents`
        is what it begins with: rows, or columns by name. After a run `run[relation]` is a
        dictionary of arrays, sorted by key. Where more than one operator uses the relation,
        `order` names an integer field that all their streams have and that does not descend in
        any, such as a time: it orders their tuples, and equal ones are served in the order in
        which the operators were declared.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> accounts = q.relation(
        ...     "accounts", {"car": int, "balance": int}, key="car", order="time", contents=[(8, 5)]
        ... )
        >>> tolls = [(1, 7, 30), (3, 8, 20), (5, 7, 10)]
        >>> paid = q.source(xs.io.iterable(tolls, out={"time": int, "car": int, "toll": int}))
        >>> asked = q.source(xs.io.iterable([(2, 7), (4, 8)], out={"time": int, "car": int}))
        >>> _ = paid.update(accounts, {"balance": ("add", "toll")})
        >>> out = asked.lookup(accounts).collect()
        >>> run = q.run()
        >>> run[out]
        [(2, 7, 30), (4, 8, 25)]
        >>> {name: column.tolist() for name, column in run[accounts].items()}
        {'car': [7, 8], 'balance': [40, 25]}
        """
        operator = relation_operator(name, fields, key, order, contents)
        return RelationRef(self, self.append(operator, (), (), name).id)

    def add(
        self, operator: Operator, inputs: tuple[Stream, ...], name: str | None = None
    ) -> tuple[Stream, ...]:
        """Add an operator that takes streams, and return its output streams.

        >>> import numpy as np, xstream as xs
        >>> from xstream.ops.basic import Count
        >>> query = xs.Query()
        >>> source = query.source(xs.io.array(np.zeros(4), window=2))
        >>> query.add(Count(), (source,))
        ()
        """
        return self._streams(self.add_node(operator, inputs, name))

    def _streams(self, node: Node) -> tuple[Stream, ...]:
        return tuple(Stream(self, node.id, port) for port in range(len(node.outputs)))

    # -- showing and running -----------------------------------------------------------------

    def to_dot(self) -> str:
        """Return the graph in the language of Graphviz; `dot -Tsvg` draws it.

        The label of an edge names its first fields, its tooltip the whole schema. Operators that
        are compiled into one function (docs/compilation.md) stand in one frame.

        >>> import numpy as np, xstream as xs
        >>> query = xs.Query("mean")
        >>> out = query.source(xs.io.array(np.zeros(4), window=2)).mean().collect()
        >>> print(query.to_dot().splitlines()[0])
        digraph "mean" {
        """
        return dot(self)

    def draw(self) -> Picture:
        """Return the graph as an SVG picture; a notebook shows it, and Graphviz is not needed.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query("levels")
        >>> out = q.source(xs.io.array(np.ones(8), window=4), name="recording").count()
        >>> picture = q.draw()
        >>> "recording" in picture, picture[:4]
        (True, '<svg')
        """
        return picture(self)

    def _repr_html_(self) -> str:
        """The graph, for notebooks."""
        return f'<div style="overflow-x:auto">{self.draw()}</div>'

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
        positions: Positions | None = None,
        threads: int | None = 1,
        fuse: bool = True,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_s: float = 10.0,
        resume: bool = False,
        live: LiveOption = False,
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
        XSTREAM_DEBUG says (1: on). `positions` is where files are read and written from, instead
        of their beginning: what `run.positions()` of an earlier run said. `fuse` compiles chains of
        kernels into one function each; it takes effect under df, with a manager that does not copy
        what it passes, and in runs without `profile` and `debug`. Results are the same;
        docs/compilation.md describes it.

        `threads` is how many threads run the query, never more than there are cores; None takes all
        cores. Results are those of one thread, in the same order at every sink. The query is
        divided once, by the busy times of its operators in the first milliseconds, under df only:
        the other schedulers run on one thread. `run.threads` and `run.parts` say what came of it.

        `checkpoint` is a folder in which the state of the run is saved every `checkpoint_s`
        seconds. After a crash the same query with `resume=True` goes on from there (from the
        beginning, if there is no checkpoint yet), and its results are those of a run without a
        break: files are cut back to where they were. Without `resume`, checkpoints of earlier runs
        in the folder are removed. docs/recovery.md says what is promised, and `run.checkpoints`
        what it cost.

        `live` shows the run on a page of this machine while it is under way (docs/live.md): True,
        a port, or an `xs.Live` with more options. The address is printed on stderr.
        """
        self.validate()
        _check_options(tuple_burst, progress, stop, state)
        manager = memory if isinstance(memory, MemoryManager) else memory_manager(memory)
        scheduled = scheduler_named(scheduler, slice_us)
        threads = thread_count(threads)
        checkpoints = None
        if checkpoint is not None:
            checkpoints = Checkpoints(checkpoint, checkpoint_s, resume)
        elif resume:
            raise GraphError("resume=True requires checkpoint=FOLDER")
        with checkpoints or nullcontext():
            run = Run(
                self, scheduled, manager, tuple_burst, profile, state, debug, positions,
                threads, fuse, checkpoints,
            )  # fmt: skip
            view = open_view(live) if live is not False and live is not None else None
            run.execute(progress=progress, stop=stop, view=view)
        return run


def _check_options(tuple_burst: object, progress: object, stop: object, state: object) -> None:
    """Raise a GraphError for invalid options of a run."""
    whole = isinstance(tuple_burst, int) and not isinstance(tuple_burst, bool)
    if tuple_burst is not None and not (whole and 1 <= tuple_burst <= MAX_SIZE):  # type: ignore[operator]
        raise GraphError(
            f"tuple_burst must be a number of tuples from 1 to {MAX_SIZE}, or None, not "
            f"{shortened(tuple_burst)}"
        )
    if not isinstance(progress, bool) and not callable(progress):
        raise GraphError(f"progress must be True, False or a function of the run, not {progress!r}")
    if stop is not None and not callable(getattr(stop, "is_set", None)):
        raise GraphError(f"stop must be a threading.Event, not {stop!r}")
    if state is not None and not isinstance(state, Mapping):
        raise GraphError(
            f"state must be a dictionary by streams or names of operators, not {state!r}"
        )
