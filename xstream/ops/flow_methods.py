"""The methods of `Stream` for any tuples: aggregation, waiting, delays and load shedding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Self

from xstream.engine.operator import Operator
from xstream.ops.aggregate import Aggregate, values_of
from xstream.ops.hold import Delay, WaitFor
from xstream.ops.shed import Shed

__all__ = ["FlowMethods"]


class FlowMethods:
    """Aggregation, waiting, delays and load shedding for streams of any tuples."""

    __slots__ = ()

    def then(self, operator: Operator, *others: Self, name: str | None = None) -> Self:
        """Add an operator with one output."""
        raise NotImplementedError

    def aggregate(
        self,
        values: Mapping[str, Any],
        *,
        by: str | Sequence[str] = (),
        window: float | Fraction | None = None,
        step: float | Fraction | None = None,
        time: str | None = None,
        report: str = "close",
        late: str = "error",
        lateness: int = 0,
        empty: bool = False,
        name: str | None = None,
    ) -> Self:
        """Values of every group in every window: (start, stop), the fields of `by`, the values.

        `values` names each value: `"count"`, or (kind, field) with a kind of sum, mean, std, min,
        max, first, last, distinct, or with a kernel that takes the array of the group's values in
        the window and returns a number. Rows are tuples of numbers, or the samples of segments.

        A window is `window` rows of its group, every `step` rows; or, with `time`, the rows whose
        integer field `time` lies in [end - window, end), for every multiple `end` of `step`. With
        `time="timebase"`, window and step are seconds of a signal. Without `step` windows do not
        overlap; without `window` the whole stream is one.

        `report="close"` reports a window of rows when it is full, and a window of time when a row
        at or after its end (plus `lateness`) arrives or the stream ends. Windows are in order,
        and groups in the order of their first row; `empty` also reports windows without
        rows. `report="change"` reports a group in the current window whenever rows enter or leave
        it. A row of a window that has been reported is an error, or dropped and counted in
        `run.stats` where `late="drop"`.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> rows = [(0, 7, 1.0), (3, 8, 5.0), (4, 7, 2.0), (11, 7, 9.0)]
        >>> src = q.source(xs.io.iterable(rows, out={"time": int, "car": int, "speed": float}))
        >>> values = {"n": "count", "speed": ("mean", "speed")}
        >>> out = src.aggregate(values, by="car", window=10, time="time").collect()
        >>> q.run()[out]
        [(0, 10, 7, 2, 1.5), (0, 10, 8, 1, 5.0), (10, 20, 7, 1, 9.0)]
        """
        keys = (by,) if isinstance(by, str) else tuple(by)
        operator = Aggregate(
            values_of(values), keys, window, step, time, report, late, lateness, empty
        )
        return self.then(operator, name=name)

    def wait_for(
        self,
        other: Self,
        on: str | tuple[str, str],
        until: str = "reached",
        flush: bool = False,
        name: str | None = None,
    ) -> Self:
        """Hold every tuple until another stream has reached its value of a field.

        A tuple leaves after the other stream had a tuple whose integer field `on` is at least
        the tuple's own (`until="reached"`), or equal to it (`until="equal"`), and all tuples before
        it have left, so the order is kept. `on` may be a pair of names, own and other. Tuples that
        still wait at the end are dropped and counted in `run.stats`, or emitted with `flush`.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> asked = q.source(xs.io.iterable([(1, 0.5), (4, 0.25)], out={"time": int, "x": float}))
        >>> done = q.source(xs.io.iterable([0, 2, 3], out={"time": int}))
        >>> out = asked.wait_for(done, on="time").collect()
        >>> q.run()[out]
        [(1, 0.5)]
        """
        own, others = (on, None) if isinstance(on, str) else on
        return self.then(WaitFor(own, others, until, flush), other, name=name)

    def delay(
        self, amount: int, time: str | None = None, stamp: bool = False, name: str | None = None
    ) -> Self:
        """Hold every tuple until `amount` more have arrived, or until a time field has advanced.

        With `time`, a tuple leaves once the stream has had a tuple whose integer field is larger by
        `amount`; `stamp` adds `amount` to the field, so that `merge(by=)` and relations see the
        tuple at its later time. At the end of the stream all tuples leave.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.iterable([(1, 0.5), (4, 0.25)], out={"time": int, "x": float}))
        >>> out = src.delay(30, time="time", stamp=True).collect()
        >>> q.run()[out]
        [(31, 0.5), (34, 0.25)]
        """
        return self.then(Delay(amount, time, stamp), name=name)

    def shed(
        self,
        limit: int,
        drop: str = "oldest",
        *,
        time: str | None = None,
        by: str | None = None,
        seed: int = 0,
        name: str | None = None,
    ) -> Self:
        """Drop tuples while more than `limit` wait in the queue of this operator.

        With `time` the limit is how far, in units of that integer field, the front of the queue is
        behind its end. `drop` selects which: the `"oldest"`, the `"newest"`, a `"random"` part, or
        all tuples of some `"key"`s, those of the field `by`; in the last two cases the part that
        is kept is limit / load. `run.stats` counts the dropped tuples.

        Tuples wait in a queue after a source without rate control (`tuple_burst=None`), and in
        front of all operators under the schedulers other than df; the dropped tuples depend on
        the scheduler and the load.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> kept = q.source(xs.io.iterable(range(100), out=int)).shed(10)
        >>> out = kept.collect()
        >>> run = q.run(tuple_burst=None)
        >>> run[out] == list(range(90, 100)), run.stats_of(kept).dropped
        (True, 90)
        """
        return self.then(Shed(limit, drop, time, by, seed), name=name)
