"""Plain Python operators: the core calls in with a tuple, Python answers with tuples.

A tuple travels through an exchange of raw slots (xstream/ops/python.c), so that a call costs about
as much as Python's own call of a method.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from xstream._native import ffi, lib
from xstream.errors import SchemaError
from xstream.ops.native import NativePlan, checked, owned
from xstream.ops.schema import Scalar, Schema, Segment
from xstream.sigseg import MemoryManager, SigSeg
from xstream.sigseg.segment import adopt

__all__ = ["PythonOperator", "PythonSource"]

_tokens = itertools.count(1)
_bodies: dict[int, Any] = {}

_ref = lib.xs_seg_ref


class Packer:
    """Writes tuples into slots, checking each value against the schema."""

    def __init__(self, manager: MemoryManager, schema: Schema, label: str) -> None:
        self.manager, self.schema, self.label = manager, schema, label
        self.types = schema.types
        self.single = self.types[0] if len(self.types) == 1 else None

    def pack(self, slots: Any, at: int, value: Any) -> None:
        """One tuple; a failure leaves no count behind."""
        if self.single is not None:
            self._put(slots, at, self.single, value, 0)
            return
        if not isinstance(value, tuple) or len(value) != len(self.types):
            raise SchemaError(
                f"{self.label}: a tuple of {len(self.types)} fields is wanted, not {value!r}"
            )
        done = 0
        try:
            for i, type_ in enumerate(self.types):
                self._put(slots, at + i, type_, value[i], i)
                done = i + 1
        except BaseException:
            for i in range(done):
                if isinstance(self.types[i], Segment):
                    lib.xs_seg_drop(slots[at + i].seg)
            raise

    def _put(self, slots: Any, at: int, type_: Any, value: Any, field: int) -> None:
        if type_.__class__ is Segment:
            if value.__class__ is not SigSeg:
                raise self._wrong(field, value)
            if value.dtype != type_.dtype or value.timebase != type_.timebase:
                raise self._wrong(field, value)
            if value.manager is not self.manager:
                value = owned(value, self.manager)
            slots[at].seg = _ref(value._handle)
            return
        try:
            if type_.kind == "float64":
                slots[at].f = value
            else:
                slots[at].i = int(value) if type_.kind == "bool" else value
        except (TypeError, OverflowError):
            raise self._wrong(field, value) from None

    def _wrong(self, field: int, value: Any) -> SchemaError:
        expected = self.schema.fields[field]
        return SchemaError(
            f"{self.label}: field {expected.name!r} is {expected.type}, not {value!r}"
        )


class _Body:
    """What both kinds have: a token for the core, rows to answer with, the error of the run.

    The table of bodies keeps them alive, and the plan takes them out when it goes; so a body must
    not refer to its plan.
    """

    def __init__(self, plan: NativePlan, outputs: tuple[Schema, ...], label: str) -> None:
        self.packers = [Packer(plan.manager, schema, label) for schema in outputs]
        self.width = len(outputs[0]) if outputs else 0
        self.token = next(_tokens)
        self.error: BaseException | None = None
        self.exchange: Any = None
        self.rows: Any = ffi.new("xs_slot[]", max(self.width, 1))
        self.one_row = self.rows

    def bind(self, plan: NativePlan, op: Any) -> Any:
        """Meet the operator in the core."""
        self.exchange = lib.xs_python_exchange(checked(op))
        self.exchange.rows = self.rows
        _bodies[self.token] = self
        plan.keep(_Registration(self.token))
        return op

    def answer_one(self, value: Any) -> None:
        self.packers[0].pack(self.one_row, 0, value)
        self.exchange.rows = self.one_row
        self.exchange.count = 1

    def answer(self, values: Any) -> None:
        values = list(values)
        if len(values) > 1:
            self.rows = ffi.new("xs_slot[]", len(values) * self.width)
            self.exchange.rows = self.rows
        else:
            self.exchange.rows = self.rows = self.one_row
        for i, value in enumerate(values):
            self.packers[0].pack(self.rows, i * self.width, value)
            self.exchange.count = i + 1


class _Registration:
    """Takes a body out of the table when its plan goes."""

    def __init__(self, token: int) -> None:
        self.token = token

    def __del__(self) -> None:
        _bodies.pop(self.token, None)


class PythonOperator(_Body):
    """A callable in a plan: `how` is map, filter, iterate or sink."""

    def __init__(
        self,
        plan: NativePlan,
        how: str,
        function: Callable[..., Any],
        inputs: tuple[Schema, ...],
        outputs: tuple[Schema, ...],
        label: str,
        finish: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(plan, outputs, label)
        self.how, self.function, self.on_finish = how, function, finish
        self.readers = [_reader(plan, schema) for schema in inputs]
        self.op = self.bind(plan, lib.xs_op_python(plan.handle, self.token))
        self.reader = self.readers[0]
        self.process = {
            "map": self._map, "filter": self._filter, "iterate": self._iterate, "sink": self._sink,
        }[how]  # fmt: skip

    def _map(self) -> None:
        exchange = self.exchange
        self.answer_one(self.function(*self.reader(exchange.input, exchange.extent)))

    def _filter(self) -> None:
        exchange = self.exchange
        values = self.reader(exchange.input, exchange.extent)
        if self.function(*values):
            self.answer_one(values[0] if len(values) == 1 else values)

    def _iterate(self) -> None:
        exchange = self.exchange
        port = exchange.port
        exchange.port = 0
        values = self.readers[port](exchange.input, exchange.extent)
        emitted = self.function(*values)
        if emitted is not None:
            self.answer(emitted)

    def _sink(self) -> None:
        exchange = self.exchange
        self.function(*self.reader(exchange.input, exchange.extent))

    def finish(self) -> None:
        """The streams have ended."""
        if self.on_finish is not None:
            emitted = self.on_finish()
            if emitted is not None and self.packers:
                self.answer(emitted)


class PythonSource(_Body):
    """An iterator in a plan; each item is a tuple of the stream."""

    def __init__(self, plan: NativePlan, items: Iterator[Any], output: Schema, label: str) -> None:
        super().__init__(plan, (output,), label)
        self.items = items
        self.op = self.bind(plan, lib.xs_op_python_source(plan.handle, self.token))

    def produce(self) -> int:
        """One tuple, or the end."""
        for value in self.items:
            self.answer_one(value)
            return int(lib.XS_OK)
        return int(lib.XS_END)


def _reader(plan: NativePlan, schema: Schema) -> Callable[[Any, Any], tuple[Any, ...]]:
    """A function that takes over the counts of a tuple and returns its values."""
    signals = plan.signals(schema)
    if len(signals) == 1 and signals[0] is not None:
        only = signals[0]
        return lambda slots, extent: (adopt(slots[0].seg, extent[0], extent[1], only),)
    kinds = [type_.kind if isinstance(type_, Scalar) else "segment" for type_ in schema.types]

    def read(slots: Any, extent: Any) -> tuple[Any, ...]:
        return tuple(
            adopt(slots[i].seg, extent[2 * i], extent[2 * i + 1], signals[i])  # type: ignore[arg-type]
            if kind == "segment"
            else slots[i].f if kind == "float64"
            else slots[i].i != 0 if kind == "bool"
            else slots[i].i
            for i, kind in enumerate(kinds)
        )  # fmt: skip

    return read


@ffi.def_extern(error=lib.XS_FAILED)  # type: ignore[untyped-decorator]
def xs_python_process(token: int) -> int:
    """The core has a tuple for a Python operator."""
    body = _bodies[token]
    try:
        body.process()
    except BaseException as error:
        body.error = error
        return 1
    return 0


@ffi.def_extern(error=lib.XS_FAILED)  # type: ignore[untyped-decorator]
def xs_python_produce(token: int) -> int:
    """The core wants the next tuple of a Python source."""
    body = _bodies[token]
    try:
        return int(body.produce())
    except BaseException as error:
        body.error = error
        return int(lib.XS_FAILED)


@ffi.def_extern(error=lib.XS_FAILED)  # type: ignore[untyped-decorator]
def xs_python_finish(token: int) -> int:
    """The streams of a Python operator have ended."""
    body = _bodies[token]
    try:
        body.finish()
    except BaseException as error:
        body.error = error
        return 1
    return 0


def error_of(op: Any) -> BaseException | None:
    """What the Python body behind an operator raised, if it did."""
    for body in list(_bodies.values()):
        if body.error is not None and body.op == op:
            return body.error  # type: ignore[no-any-return]
    return None
