"""`xs.io.paced`: a source whose tuples are admitted when a clock reaches their times."""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any

from xstream._native import ffi, lib
from xstream.engine._python import take_error
from xstream.engine.attachment import Attachment, Outcome, Position, Resumable
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator
from xstream.engine.schema import Scalar, Schema, Segment
from xstream.errors import GraphError, SchemaError
from xstream.graph import check_operator
from xstream.io.clock import Clock, SystemClock
from xstream.io.feed import Feed

__all__ = ["PacedSource", "paced"]

#: The longest single wait for a clock; the run checks for a stop in between.
_LONGEST_WAIT_S = 0.02
#: Times nearer than this are due: a clock in float seconds cannot resolve the difference.
_CLOSE_S = 1e-9
_tokens = itertools.count(1)
_paces: dict[int, weakref.ref[_Pace]] = {}


@dataclass(frozen=True, eq=False)
class PacedSource(Operator):
    """Another source, paced by a clock."""

    kind = "paced"
    ports = ()
    source: Operator
    speed: float = 1.0
    by: str | None = None
    clock: Clock = field(default_factory=SystemClock, repr=False)

    def __post_init__(self) -> None:
        check_operator(self.source)
        if self.source.ports:
            raise GraphError(f"paced: {self.source.label} is not a source: it has input ports")
        number = isinstance(self.speed, int | float) and not isinstance(self.speed, bool)
        if not number or not 0 < self.speed < math.inf:
            raise GraphError(f"paced: speed is a positive number, not {self.speed!r}")
        if not callable(self.clock) or not callable(getattr(self.clock, "wait", None)):
            raise GraphError(f"paced: a clock is called and waits, as {self.clock!r} does not")

    @property
    def label(self) -> str:
        return f"paced {self.source.label}"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        outputs = self.source.outputs(inputs)
        for schema in outputs:
            self._timing(schema)
        return outputs

    def _timing(self, schema: Schema) -> tuple[int, bool, float]:
        """The field with the time, whether it is a float, and the seconds per unit."""
        names = [each.name for each in schema]
        if self.by is not None and self.by not in names:
            raise SchemaError(f"{self.label}: by={self.by!r} is no field of {schema}")
        for i, (name, type_) in enumerate(zip(names, schema.types, strict=True)):
            if self.by is None and isinstance(type_, Segment) and not type_.timebase.is_index:
                assert type_.timebase.rate_hz is not None
                return i, False, 1.0 / type_.timebase.rate_hz
            if name == self.by and isinstance(type_, Scalar) and type_.slot != "bool":
                return i, type_.slot == "float64", 1.0
        raise SchemaError(
            f"{self.label}: nothing says when the tuples of {schema} are due: give the source a "
            "rate_hz, or name a field of seconds with by="
        )

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        inner = self.source.create(plan, (), outputs)
        plan.shape(inner, (), outputs)
        place, is_float, unit_s = self._timing(outputs[0])
        attached = plan.attachment(inner)
        pace = (_ResumablePace if isinstance(attached, Resumable) else _Pace)(self.clock, inner)
        pace.inner = attached
        native = {
            "field": place, "is_float": is_float, "unit_ns": unit_s * 1e9 / self.speed,
            "clock": 0 if type(self.clock) is SystemClock else pace.token,
        }  # fmt: skip
        pace.op = checked(lib.xs_op_paced(plan.handle, inner, native))
        inlet = checked(lib.xs_op_paced_inlet(pace.op))
        plan.shape(inlet, outputs, ())
        for port in range(len(outputs)):
            plan.connect(inner, port, inlet, port)
        plan.attach(pace.op, pace)
        return pace.op


class _Pace:
    """The attachment of a paced source: its clock, and the attachment of its inner source."""

    def __init__(self, clock: Clock, inner_op: Any) -> None:
        self.clock, self.inner_op = clock, inner_op
        self.op: Any = None
        self.inner: Attachment | None = None
        self.stop = threading.Event()
        self.token = next(_tokens)
        self.clock_error: BaseException | None = None
        _paces[self.token] = weakref.ref(self)

    def __del__(self, paces: Any = _paces) -> None:
        paces.pop(self.token, None)

    @property
    def error(self) -> BaseException | None:
        """The error of the clock or of the inner source."""
        if self.clock_error is not None:
            return self.clock_error
        error = take_error(self.inner_op)
        return error if error is not None or self.inner is None else self.inner.error

    def begin(self) -> None:
        """The inner source's attachment is attached to the plan itself."""

    def end(self, outcome: Outcome) -> None:
        """Stop waiting."""
        self.stop.set()

    def now_ns(self, due_ns: int) -> int:
        """The current time, after a short wait if it is too early."""
        early_s = due_ns / 1e9 - self.clock()
        if early_s > _CLOSE_S:
            self.clock.wait(min(early_s, _LONGEST_WAIT_S), self.stop)
        now_s = self.clock()
        return max(round(now_s * 1e9), due_ns if due_ns / 1e9 - now_s <= _CLOSE_S else 0)


class _ResumablePace(_Pace):
    """The attachment of a paced source whose inner source has a position."""

    def position(self) -> Position:
        """The position of the inner source, without the tuples that are held."""
        assert isinstance(self.inner, Resumable)
        if not isinstance(self.inner, Feed):  # the core saves the tuples that are held
            return self.inner.position()
        return self.inner.position_of(self.inner.next_sample() - int(lib.xs_paced_held(self.op)))

    def restore(self, position: Position) -> None:
        """Start at a position."""
        assert isinstance(self.inner, Resumable)
        self.inner.restore(position)


def _failed_clock(kind: Any, error: BaseException, traceback: Any) -> None:
    """Handle an exception of a clock, or Ctrl-C inside it."""
    pace = _paces[traceback.tb_frame.f_locals["token"]]()
    if pace is not None:
        pace.clock_error = error


@ffi.def_extern(error=-1, onerror=_failed_clock)  # type: ignore[untyped-decorator]
def xs_io_clock(token: int, due_ns: int) -> int:
    """Called by the core to read a Python clock, or to wait for it."""
    pace = _paces[token]()
    assert pace is not None, "a plan that runs holds its attachments"
    return pace.now_ns(due_ns)


def paced(
    source: Operator, speed: float = 1.0, *, by: str | None = None, clock: Clock | None = None
) -> PacedSource:
    """Another source whose tuples are admitted when due, `speed` times as fast as the clock.

    Time begins with the first sample. A window is due when its last sample was taken, a tuple of
    scalars at the seconds in its field `by`. `run.stats[...]` has `lateness`, the time from when
    tuples were due until they were admitted, and `latency`, the time until all their results had
    reached the sinks. The default `clock` is the system's; tests use a `ManualClock`.

    >>> import numpy as np, xstream as xs
    >>> clock = xs.testing.ManualClock()
    >>> recording = xs.io.array(np.zeros(8_000), rate_hz=8_000.0, window=1000)
    >>> q = xs.Query()
    >>> out = q.source(xs.io.paced(recording, speed=2.0, clock=clock), name="mic").count()
    >>> run = q.run()
    >>> run[out], round(clock(), 3), run.stats["mic"].lateness.worst_ns
    (8, 0.5, 0)
    """
    return PacedSource(source, speed, by, SystemClock() if clock is None else clock)
