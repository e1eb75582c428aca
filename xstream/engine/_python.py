"""Plain Python operators: the core calls Python with a tuple, Python returns tuples.

A tuple travels through an exchange of raw slots (xstream/engine/python.c). Slots are read and
written through typed pointers that are created once, and segments of one signal are recognised by
identity. The remaining cost is about that of a Python function call.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from xstream._native import ffi, lib
from xstream.engine._slots import Slots, packer, shown
from xstream.engine.native import NativePlan, checked
from xstream.engine.schema import MAX_FIELDS, Schema, Segment
from xstream.errors import SchemaError
from xstream.sigseg import SigSeg
from xstream.sigseg.segment import adopt

__all__ = ["PythonOperator", "PythonSource"]

_tokens = itertools.count(1)
#: The functions that the core calls by token, and the bodies of operators and sources. The plan
#: holds them, and the tables have weak references, so that the garbage collector sees every cycle
#: from a user's function back to its run.
_calls: dict[int, weakref.ref[Callable[[], Any]]] = {}
_bodies: dict[int, weakref.ref[_Body]] = {}


def _read_source(schema: Schema) -> str:
    """An expression that takes the tuple out of the exchange: `I`, `F` and `S` are its slots."""
    reads = []
    for i, type_ in enumerate(schema.types):
        if isinstance(type_, Segment):
            reads.append(f"adopt(S[{i}], E[{2 * i}], E[{2 * i + 1}], signals[{i}])")
        else:
            kinds = {"float64": f"F[{i}]", "bool": f"I[{i}] != 0", "int64": f"I[{i}]"}
            reads.append(kinds[type_.slot])
    return f"({', '.join(reads)},)"


def _names(plan: NativePlan, schema: Schema, exchange: Any) -> dict[str, Any]:
    """The names that the expression of `_read_source` uses."""
    slots = Slots(exchange.input, MAX_FIELDS)
    extent = memoryview(ffi.buffer(exchange.extent, 2 * 8 * MAX_FIELDS)).cast("q")
    return {
        "__name__": __name__,
        "I": slots.integers, "F": slots.floats, "S": slots.segments, "E": extent,
        "adopt": adopt, "signals": plan.signals(schema),
    }  # fmt: skip


def _mapper(
    plan: NativePlan, schema: Schema, exchange: Any, function: Any, pack: Any, row: Slots
) -> Callable[[], None]:
    """A complete map in one function, because map is the most frequent operator."""
    namespace = _names(plan, schema, exchange)
    namespace |= {"function": function, "pack": pack, "row": row, "exchange": exchange}
    arguments = _read_source(schema)[1:-2]
    source = f"def call():\n    pack(function({arguments}), row, 0)\n    exchange.count = 1"
    exec(source, namespace)
    return namespace.pop("call")  # type: ignore[no-any-return]


def _reader(plan: NativePlan, schema: Schema, exchange: Any) -> Callable[[], Any]:
    """A function that takes over the counts of the tuple in the exchange and returns its values."""
    namespace = _names(plan, schema, exchange)
    return eval(f"lambda: {_read_source(schema)}", namespace)  # type: ignore[no-any-return]


class _Body:
    """The base of operators and sources: a token for the core, rows for results, an error.

    The plan keeps a body alive. A body does not refer to its plan, so most plans are freed without
    the garbage collector.
    """

    op: Any

    def __init__(self, plan: NativePlan, outputs: tuple[Schema, ...], label: str) -> None:
        self.label = label
        self.packs = [packer(plan.manager, schema, label) for schema in outputs]
        self.width = len(outputs[0]) if outputs else 0
        self.emits_segments = bool(outputs) and outputs[0].only_segment is not None
        self.token = next(_tokens)
        self.error: BaseException | None = None
        self.exchange: Any = None
        self.one_row = Slots(ffi.new("xs_slot[]", max(self.width, 1)), max(self.width, 1))
        self.rows = self.one_row

    def bind(self, op: Any) -> Any:
        """Attach the body to its operator in the core."""
        self.exchange = lib.xs_python_exchange(checked(op))
        self.exchange.rows = self.one_row.slots
        return op

    def register(self, plan: NativePlan, call: Callable[[], Any]) -> None:
        """Register the body and its function with the core for the lifetime of the plan."""
        plan.keep(_Registration(self, call))

    def answer_one(self, value: Any) -> None:
        """Emit one tuple; the row is reused."""
        self.packs[0](value, self.one_row, 0)
        self.exchange.count = 1

    def answer(self, values: Iterable[Any]) -> None:
        """Emit any number of tuples."""
        alone = isinstance(values, SigSeg) and self.emits_segments  # not in a list
        if not isinstance(values, Iterable) or isinstance(values, str | bytes) or alone:
            raise SchemaError(
                f"{self.label}: the function returns a list or another iterable of tuples, or "
                f"None, not {shown(values)}"
            )
        values = list(values)
        if len(values) > 1:
            count = len(values) * self.width
            self.rows = Slots(ffi.new("xs_slot[]", count), count)
        else:
            self.rows = self.one_row
        self.exchange.rows = self.rows.slots
        for i, value in enumerate(values):
            self.packs[0](value, self.rows, i * self.width)
            self.exchange.count = i + 1

    def finish(self) -> None:
        """The streams have ended."""


class _Registration:
    """Holds a body and its function; removes both from the tables when the plan is freed."""

    def __init__(self, body: _Body, call: Callable[[], Any]) -> None:
        self.body, self.call, self.token = body, call, body.token
        _calls[self.token] = weakref.ref(call)
        _bodies[self.token] = weakref.ref(body)

    def __del__(self, calls: Any = _calls, bodies: Any = _bodies) -> None:
        calls.pop(self.token, None)
        bodies.pop(self.token, None)


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
        self.function, self.on_finish = function, finish
        self.op = self.bind(lib.xs_op_python(plan.handle, self.token))
        self.readers = [_reader(plan, schema, self.exchange) for schema in inputs]
        self.read = self.readers[0]
        if how == "map":
            pack = self.packs[0]
            call = _mapper(plan, inputs[0], self.exchange, function, pack, self.one_row)
        else:
            call = {"filter": self._filter, "iterate": self._iterate, "sink": self._sink}[how]
        self.register(plan, call)

    def _filter(self) -> None:
        values = self.read()
        verdict = self.function(*values)
        if verdict is not True and verdict is not False:
            verdict = self._flag(verdict)
        if verdict:
            self.answer_one(values[0] if len(values) == 1 else values)

    def _flag(self, verdict: Any) -> bool:
        """Accept a number or None as a flag; raise an error for anything else."""
        if verdict is None or isinstance(verdict, int | float | np.bool_ | np.number):
            return bool(verdict)
        raise SchemaError(f"{self.label}: a filter returns True or False, not {shown(verdict)}")

    def _iterate(self) -> None:
        values = self.readers[self.exchange.port]()
        self.exchange.port = 0  # from here on the output port
        emitted = self.function(*values)
        if emitted is not None:
            self.answer(emitted)

    def _sink(self) -> None:
        self.function(*self.read())

    def finish(self) -> None:
        if self.on_finish is not None:
            emitted = self.on_finish()
            if emitted is not None and self.packs:
                self.answer(emitted)


class PythonSource(_Body):
    """An iterator in a plan; each item is a tuple of the stream."""

    def __init__(self, plan: NativePlan, items: Iterator[Any], output: Schema, label: str) -> None:
        super().__init__(plan, (output,), label)
        self.items = items
        self.op = self.bind(lib.xs_op_python_source(plan.handle, self.token))
        self.register(plan, self._produce)

    def _produce(self) -> int:
        for value in self.items:
            self.answer_one(value)
            return int(lib.XS_OK)
        return int(lib.XS_END)


def _body(token: int) -> _Body:
    body = _bodies[token]()
    assert body is not None, "a plan that runs holds its operators"
    return body


def _interrupted(kind: Any, error: BaseException, traceback: Any) -> None:
    """Handle an exception of a callback; Ctrl-C may arrive before its first line."""
    body = _body(traceback.tb_frame.f_locals["token"])
    body.error = error
    if isinstance(body, PythonOperator) and traceback.tb_frame.f_code.co_name == _PROCESS:
        body.readers[body.exchange.port]()  # the counts on the tuple's segments are ours: drop them


_PROCESS = "xs_python_process"


@ffi.def_extern(error=lib.XS_FAILED, onerror=_interrupted)  # type: ignore[untyped-decorator]
def xs_python_process(token: int) -> int:
    """Called by the core with a tuple for a Python operator."""
    try:
        _calls[token]()()  # type: ignore[misc]
    except BaseException as error:
        _body(token).error = error
        return 1
    return 0


@ffi.def_extern(error=lib.XS_FAILED, onerror=_interrupted)  # type: ignore[untyped-decorator]
def xs_python_produce(token: int) -> int:
    """Called by the core for the next tuple of a Python source."""
    try:
        return int(_calls[token]()())  # type: ignore[misc]
    except BaseException as error:
        _body(token).error = error
        return int(lib.XS_FAILED)


@ffi.def_extern(error=lib.XS_FAILED, onerror=_interrupted)  # type: ignore[untyped-decorator]
def xs_python_finish(token: int) -> int:
    """Called by the core when the streams of a Python operator have ended."""
    try:
        _body(token).finish()
    except BaseException as error:
        _body(token).error = error
        return 1
    return 0


def take_error(op: Any) -> BaseException | None:
    """Return the exception of an operator's Python body, or None.

    The body forgets it: its traceback refers to the run, which would make a cycle.
    """
    for reference in list(_bodies.values()):
        body = reference()
        if body is not None and body.error is not None and body.op == op:
            error, body.error = body.error, None
            return error
    return None
