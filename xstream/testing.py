"""Tools for tests of operators: run one alone, feed it from a list, generate signals.

run_operator    runs one operator alone, on lists of tuples
list_source     a source that emits the tuples of a list
Collector       a sink that keeps all tuples
ManualClock     a clock whose time passes only when it is advanced
signals, segments, streams    hypothesis strategies (pip install 'xstream[testing]')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from xstream._native import ffi, lib
from xstream.console import require_package
from xstream.engine.native import NativePlan, checked, owned
from xstream.engine.operator import Operator
from xstream.engine.schema import Scalar, Schema, SchemaLike, Segment, scalar_of, schema
from xstream.errors import GraphError, SchemaError
from xstream.io.clock import StopSignal
from xstream.query import Query
from xstream.sigseg import MemoryManager, SigSeg, Timebase

if TYPE_CHECKING:
    from hypothesis import strategies as st

__all__ = [
    "Collector",
    "CutSignal",
    "ListSource",
    "ManualClock",
    "list_source",
    "run_operator",
    "segments",
    "signals",
    "streams",
]

Items = Sequence[Any] | Callable[[MemoryManager], Sequence[Any]]


@dataclass(frozen=True, eq=False)
class ListSource(Operator):
    """Emits tuples from a list; they are prepared before the run.

    The engine calls `outputs` and `create`, as those of every operator.

    >>> import xstream as xs
    >>> source = ListSource([1, 2, 3], out=xs.schema(int))
    >>> str(source.outputs(())[0]), ListSource.create.__name__
    ('int64', 'create')
    >>> query = xs.Query()
    >>> out = query.source(source).collect()
    >>> query.run()[out]
    [1, 2, 3]
    """

    kind = "list"
    ports = ()
    items: Items = field(repr=False)
    out: Schema = field(kw_only=True)

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        """Return the declared schema."""
        return (self.out,)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        """Write the tuples in the format of the C core."""
        items = self.items(plan.manager) if callable(self.items) else self.items
        width = len(self.out)
        slots = ffi.new("xs_slot[]", max(len(items) * width, 1))
        for number, item in enumerate(items):
            row = (item,) if width == 1 else item
            for i, (type_, value) in enumerate(zip(self.out.types, row, strict=True)):
                self._write(plan, slots[number * width + i], type_, value)
        plan.keep(slots)
        return checked(lib.xs_op_list_source(plan.handle, slots, len(items)))

    def _write(self, plan: NativePlan, slot: Any, type_: Scalar | Segment, value: Any) -> None:
        if isinstance(type_, Segment):
            if not isinstance(value, SigSeg) or value.dtype != type_.dtype:
                raise SchemaError(
                    f"{self.label}: declared as {self.out}, and its tuples are {value!r}"
                )
            segment = owned(value, plan.manager)
            plan.keep(segment)  # the core borrows it
            slot.seg = segment._handle
        elif type_.slot == "float64":
            slot.f = value
        else:
            slot.i = int(value)


def list_source(items: Items, out: SchemaLike = None) -> ListSource:
    """Return a source that emits a list of tuples; `out` defaults to the type of the first item.

    `items` may be a function of the run's memory manager, for segments that it has to create.

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> out = q.source(list_source([(1, 0.5), (2, 0.25)])).collect()
    >>> q.run()[out]
    [(1, 0.5), (2, 0.25)]
    """
    if out is None:
        if callable(items) or not len(items):
            raise SchemaError("an empty list has no type: declare out=")
        out = _schema_of(items[0])
    return ListSource(items, out=schema(out))


def _schema_of(item: Any) -> Schema:
    if isinstance(item, tuple):
        return schema(tuple(_type_of(value) for value in item))
    return schema(_type_of(item))


def _type_of(value: Any) -> Scalar | Segment:
    if isinstance(value, SigSeg):
        return Segment(value.dtype, value.timebase)
    return Scalar("int64") if isinstance(value, np.uint64) else scalar_of(type(value))


def run_operator(
    operator: Operator,
    *inputs: ListSource | CutSignal | Sequence[Any],
    scheduler: str = "df",
    memory: str | MemoryManager = "refcount-lazy",
    tuple_burst: int | None = 64,
    debug: bool | None = None,
) -> Any:
    """Run one operator alone on a list of tuples per input port; return a list per output port.

    With one output port, its list is returned. An empty input must be a `list_source` that declares
    its schema. The options are those of `Query.run`.

    >>> from xstream.ops.zip import Zip
    >>> run_operator(Zip(), [1, 2, 3], [0.5, 0.25])
    [(1, 0.5), (2, 0.25)]
    """
    query = Query(f"{operator.label} alone")
    sources = tuple(query.source(_source(items)) for items in inputs)
    if not sources:
        raise GraphError(f"{operator.label} alone needs an input")
    sinks = [stream.collect() for stream in query.add(operator, sources)]
    run = query.run(scheduler, memory, tuple_burst, debug=debug)
    results = [run[sink] for sink in sinks]
    return results[0] if len(results) == 1 else tuple(results)


def _source(items: ListSource | CutSignal | Sequence[Any]) -> ListSource:
    if isinstance(items, ListSource):
        return items
    if isinstance(items, CutSignal):
        return list_source(items.segments, Segment(items.samples.dtype, items.timebase))
    return list_source(items)


class Collector:
    """A sink that keeps every tuple and, with a clock, the time of its arrival.

    >>> import numpy as np, xstream as xs
    >>> q, seen = xs.Query(), Collector()
    >>> _ = q.source(xs.io.iterable([1, 2], out=int)).sink(seen)
    >>> _ = q.run()
    >>> seen.items
    [1, 2]
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.clock = clock
        self.items: list[Any] = []
        self.times: list[float] = []

    def __call__(self, *values: Any) -> None:
        """Keep a tuple."""
        self.items.append(values[0] if len(values) == 1 else values)
        if self.clock is not None:
            self.times.append(self.clock())


class ManualClock:
    """A clock that passes only when it is advanced, for code that takes its clock as a parameter.

    >>> clock = ManualClock()
    >>> clock.sleep(1.5)
    >>> clock()
    1.5
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Advance the time.

        >>> clock = ManualClock(now=10.0)
        >>> clock.advance(0.5)
        >>> clock()
        10.5
        """
        if seconds < 0:
            raise ValueError(f"a clock can be advanced by 0 s or more, not by {seconds} s")
        self.now += seconds

    sleep = advance

    def wait(self, seconds: float, stop: StopSignal) -> None:
        """Advance the time immediately, unless `stop` is set.

        >>> import threading
        >>> clock = ManualClock()
        >>> clock.wait(2.0, threading.Event())
        >>> clock()
        2.0
        """
        if not stop.is_set():
            self.advance(seconds)


# -- signals -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CutSignal:
    """A signal cut into a stream: its samples, the ends of segments and of their pieces.

    >>> signal = CutSignal(np.arange(4), start=10, cuts=(1, 1), joints=(2,))
    >>> [(seg.start, seg.width, seg.pieces) for seg in signal.segments()]
    [(10, 1, 1), (11, 0, 0), (11, 3, 2)]
    """

    samples: npt.NDArray[Any]
    start: int = 0
    cuts: tuple[int, ...] = ()
    joints: tuple[int, ...] = ()
    timebase: Timebase = field(default_factory=Timebase.index)

    def segments(self, memory: str | MemoryManager | None = None) -> list[SigSeg]:
        """Return the segments of the stream, created with a memory manager."""
        bounds = [0, *sorted(self.cuts), len(self.samples)]
        return [self._segment(low, high, memory) for low, high in pairwise(bounds)]

    def _segment(self, low: int, high: int, memory: str | MemoryManager | None) -> SigSeg:
        inside = sorted(joint for joint in self.joints if low < joint < high)
        segment = None
        for a, b in pairwise([low, *inside, high]):
            manager = memory if segment is None else segment.manager
            piece = SigSeg(self.samples[a:b], self.start + a, self.timebase, manager)
            segment = piece if segment is None else segment.append(piece)
        assert segment is not None
        return segment


def signals(
    dtypes: Sequence[npt.DTypeLike] = (np.float32,),
    max_width: int = 200,
    max_cuts: int = 12,
    timebase: Timebase | None = None,
    start: int | None = None,
) -> st.SearchStrategy[CutSignal]:
    """Generate signals that are cut anywhere: null segments, single samples, segments in pieces.

    One of the dtypes is drawn. Samples are integers from -100 to 100 (within the range of the
    dtype), so that their sums are exact.

    >>> from hypothesis import HealthCheck, given, settings
    >>> @settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
    ... @given(signals(["int16"]))
    ... def parts_make_the_whole(signal):
    ...     assert sum(segment.width for segment in signal.segments()) == len(signal.samples)
    >>> parts_make_the_whole()
    """
    require_package("hypothesis")
    from hypothesis import strategies as st

    @st.composite
    def drawn(draw: st.DrawFn) -> CutSignal:
        width = draw(st.integers(0, max_width))
        dtype = np.dtype(draw(st.sampled_from(dtypes)))
        noise = np.random.default_rng(draw(st.integers(0, 2**16)))
        at = st.integers(0, width)
        first = draw(st.integers(-1000, 1000)) if start is None else start
        return CutSignal(
            _noise(noise, width, dtype),
            first,
            tuple(draw(st.lists(at, max_size=max_cuts))),
            tuple(draw(st.lists(at, max_size=max_cuts))),
            timebase or Timebase.index(),
        )

    return drawn()


def _noise(noise: np.random.Generator, width: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    low = 0 if dtype.kind in "ub" else -100
    if dtype.names is not None:
        samples = np.zeros(width, dtype)
        for name in dtype.names:
            samples[name] = _noise(noise, width, dtype[name])
        return samples
    numbers = noise.integers(low, 2 if dtype.kind == "b" else 101, width)
    if dtype.kind == "c":
        return (numbers + 1j * noise.integers(low, 101, width)).astype(dtype)
    return numbers.astype(dtype)


def segments(
    dtypes: Sequence[npt.DTypeLike] = (np.float32,),
    max_width: int = 200,
    memory: str | MemoryManager | None = None,
) -> st.SearchStrategy[SigSeg]:
    """Generate single segments, in one or several pieces.

    >>> from hypothesis import HealthCheck, given, settings
    >>> @settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
    ... @given(segments(["int16"]))
    ... def halves_join_again(segment):
    ...     middle = segment.width // 2
    ...     first = segment.subseg(segment.start, middle)
    ...     second = segment.subseg(segment.start + middle, segment.width - middle)
    ...     assert first.append(second) == segment
    >>> halves_join_again()
    """
    whole = signals(dtypes, max_width).map(lambda signal: replace(signal, cuts=()))
    return whole.map(lambda signal: signal.segments(memory)[0])


def streams(
    dtypes: Sequence[npt.DTypeLike] = (np.float32,),
    max_width: int = 200,
    memory: str | MemoryManager | None = None,
) -> st.SearchStrategy[list[SigSeg]]:
    """Generate lists of adjacent segments.

    >>> from hypothesis import HealthCheck, given, settings
    >>> @settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
    ... @given(streams(["int16"]))
    ... def segments_are_adjacent(stream):
    ...     assert all(a.stop == b.start for a, b in zip(stream, stream[1:]))
    >>> segments_are_adjacent()
    """
    return signals(dtypes, max_width).map(lambda signal: signal.segments(memory))
