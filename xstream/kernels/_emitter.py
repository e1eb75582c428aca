"""Numba extensions for `out` in kernels that emit: `out.emit`, `out.start` and the others."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import errors
from numba.extending import (
    intrinsic,
    models,
    overload_attribute,
    overload_method,
    register_model,
)

from xstream.kernels._inner import INNER
from xstream.kernels._numba import address_as_pointer, call_send, fill, keep_array

_WORD = ir.IntType(64)


class EmitterType(types.Type):
    """The type of `out` in a kernel that emits: it knows the output fields and the frame."""

    def __init__(
        self, fields: tuple[tuple[str, str], ...], outputs_at: int, words: int, start_at: int
    ) -> None:
        self.fields = fields
        self.outputs_at = outputs_at
        self.words = words
        self.start_at = start_at
        super().__init__(name=f"Emitter({fields}, {outputs_at}, {words}, {start_at})")


@register_model(EmitterType)
class _EmitterModel(models.PrimitiveModel):
    def __init__(self, manager, emitter):
        super().__init__(manager, emitter, _WORD)


@intrinsic
def frame_of(typing_context, emitter):
    """The frame of an emitter."""

    def codegen(context, builder, signature, arguments):
        return arguments[0]

    return types.int64(emitter), codegen


def emitter_maker(
    fields: tuple[tuple[str, str], ...], outputs_at: int, words: int, start_at: int
) -> Callable[[int], Any]:
    """A function that makes an emitter with these output fields from a frame's address."""
    emitter = EmitterType(fields, outputs_at, words, start_at)

    @intrinsic
    def make(typing_context, frame):
        def codegen(context, builder, signature, arguments):
            return arguments[0]

        return emitter(types.int64), codegen

    return make


def _emit_source(emitter: EmitterType, given_start: bool) -> str:
    """Generate the body of emit: store each value in its output word or segment, then send."""
    first = "start, " if given_start else ""
    start = "start" if given_start else "0"
    words = emitter.words
    lines = [
        f"def implementation(out, {first}*values):",
        "    frame = frame_of(out)",
        f"    w = carray(address_as_pointer(frame), ({words},), np.int64)",
        f"    f = carray(address_as_pointer(frame), ({words},), np.float64)",
    ]
    for i, (kind, dtype) in enumerate(emitter.fields):
        word = emitter.outputs_at + i
        if kind == "segment":
            lines += [
                f"    n{i} = len(values[{i}])",
                f"    p{i} = keep_array(frame, {i}, {start}, D{i}, values[{i}], -1)",
                f"    if p{i} != 0:",
                f"        fill(carray(address_as_pointer(p{i}), (n{i},), D{i}), values[{i}])",
            ]
        else:
            words = "f" if dtype.startswith("float") else "w"
            wide = dtype in ("bool", "int64", "float64")
            value = f"values[{i}]" if wide else f"np.{dtype}(values[{i}])"
            lines.append(f"    {words}[{word}] = {value}")
    lines.append("    return call_send(w[2], frame) == 0")
    return "\n".join(lines)


def checked_emit(emitter: Any, values: Any) -> None:
    """A typing error for values that are not what `out=` declares."""
    if len(values) == 1 and isinstance(values[0], types.StarArgTuple | types.StarArgUniTuple):
        values = values[0].types  # numba asks a second time with the values packed
    wanted = len(emitter.fields)
    if len(values) != wanted:
        raise errors.TypingError(f"out= declares {wanted} fields and {len(values)} are emitted")
    for i, ((kind, _), value) in enumerate(zip(emitter.fields, values, strict=True)):
        unfit = types.Number | types.Boolean if kind == "segment" else types.Array
        if isinstance(value, unfit):
            what = "a segment" if kind == "segment" else "a number"
            raise errors.TypingError(f"out= declares {what} as field {i} and {value} is emitted")


def _emit_implementation(emitter: EmitterType, values: Any, given_start: bool) -> Any:
    checked_emit(emitter, values)
    namespace: dict[str, Any] = {
        "__name__": __name__,  # cached code is loaded by the name of an importable module
        "np": np, "carray": carray, "frame_of": frame_of,
        "keep_array": keep_array, "fill": fill, "call_send": call_send,
        "address_as_pointer": address_as_pointer,
    }  # fmt: skip
    for i, (kind, dtype) in enumerate(emitter.fields):
        if kind == "segment":
            namespace[f"D{i}"] = np.lib.format.descr_to_dtype(literal_eval(dtype))
    exec(_emit_source(emitter, given_start), namespace)
    return namespace["implementation"]


@overload_method(EmitterType, "emit", jit_options=INNER)
def _emit(out, *values):
    return _emit_implementation(out, values, given_start=False)


@overload_method(EmitterType, "emit_at", jit_options=INNER)
def _emit_at(out, start, *values):
    return _emit_implementation(out, values, given_start=True)


@overload_attribute(EmitterType, "start")
def _start(out):
    at = out.start_at

    def read(out):
        return carray(address_as_pointer(frame_of(out)), (at + 1,), np.int64)[at]

    return read


@overload_attribute(EmitterType, "ended")
def _ended(out):
    return lambda out: carray(address_as_pointer(frame_of(out)), (6,), np.int64)[5] != 0


class PlainEmitter:
    """The `out` of an uncompiled kernel, which records the emitted tuples.

    >>> out = PlainEmitter()
    >>> out.emit(1, 2.5)
    True
    >>> out.emitted
    [(None, (1, 2.5))]
    """

    def __init__(self, start: int = 0, ended: bool = False) -> None:
        self.start, self.ended = start, ended
        self.emitted: list[tuple[int | None, tuple[Any, ...]]] = []

    def emit(self, *values: Any) -> bool:
        """Emit a tuple of these values."""
        self.emitted.append((None, values))
        return True

    def emit_at(self, start: int, *values: Any) -> bool:
        """Emit a tuple whose segments start at index `start`."""
        self.emitted.append((int(start), values))
        return True
