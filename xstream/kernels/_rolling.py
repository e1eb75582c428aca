"""Rolling segments in compiled kernels: methods that call the core (xstream/kernels/rolling.c).

The functions are read from the segment's own memory at run time, so that compiled code can be
cached on disk.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import (
    intrinsic,
    models,
    overload_attribute,
    overload_method,
    register_model,
)

from xstream._native import lib
from xstream.kernels._numba import address_as_pointer, call_grow
from xstream.kernels.rolling import APPENDS_MORE, VIEWS_OUTSIDE

__all__ = ["RollingType", "rolling_maker"]

_WORD = ir.IntType(64)
ROOM, APPEND, CUT, AT = (
    int(getattr(lib, f"XS_ROLLING_{name}")) for name in ("ROOM", "APPEND", "CUT", "AT")
)
START, STOP, WORDS = (
    int(getattr(lib, f"XS_ROLLING_{name}")) for name in ("START", "STOP", "WORDS")
)
NO_MEMORY = "a rolling segment cannot grow: out of memory"

call_with_one = call_grow


class RollingType(types.Type):
    """The type of a rolling segment in a kernel's state: the address of the core's struct."""

    def __init__(self, described: str) -> None:
        self.sample = np.lib.format.descr_to_dtype(literal_eval(described))
        super().__init__(name=f"Rolling({described})")


@register_model(RollingType)
class _RollingModel(models.PrimitiveModel):
    def __init__(self, manager, rolling):
        super().__init__(manager, rolling, _WORD)


def rolling_maker(described: str) -> Callable[[int], Any]:
    """A function that makes a rolling segment with this sample type from its address."""
    rolling = RollingType(described)

    @intrinsic
    def make(typing_context, address):
        def codegen(context, builder, signature, arguments):
            return arguments[0]

        return rolling(types.int64), codegen

    return make


@intrinsic
def address_of(typing_context, rolling):
    """The address of a rolling segment."""

    def codegen(context, builder, signature, arguments):
        return arguments[0]

    return types.int64(rolling), codegen


@intrinsic
def call_with_two(typing_context, function, rolling, a, b):
    """Call the function at an address with three 64-bit words."""

    def codegen(context, builder, signature, values):
        kind = ir.FunctionType(_WORD, [_WORD] * 3)
        pointer = builder.inttoptr(values[0], kind.as_pointer())
        return builder.call(pointer, list(values[1:]))

    return types.int64(*[types.int64] * 4), codegen


@intrinsic
def words_of(typing_context, rolling):
    """The words of a rolling segment: functions, then the range that it holds."""

    def codegen(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(rolling), codegen


@overload_attribute(RollingType, "start")
def _start(rolling):
    return lambda rolling: carray(words_of(rolling), (WORDS,), np.int64)[START]


@overload_attribute(RollingType, "stop")
def _stop(rolling):
    return lambda rolling: carray(words_of(rolling), (WORDS,), np.int64)[STOP]


@overload_method(RollingType, "room")
def _room(rolling, n):
    dtype = rolling.sample

    def room(rolling, n):
        words = carray(words_of(rolling), (WORDS,), np.int64)
        data = call_with_one(words[ROOM], address_of(rolling), n) if n >= 0 else 0
        if data == 0:
            raise MemoryError(NO_MEMORY)
        return carray(address_as_pointer(data), (n,), dtype)

    return room


@overload_method(RollingType, "append")
def _append(rolling, n):
    def append(rolling, n):
        words = carray(words_of(rolling), (WORDS,), np.int64)
        if call_with_one(words[APPEND], address_of(rolling), n) != 0:
            raise ValueError(APPENDS_MORE)

    return append


@overload_method(RollingType, "cut")
def _cut(rolling, start):
    def cut(rolling, start):
        words = carray(words_of(rolling), (WORDS,), np.int64)
        if call_with_one(words[CUT], address_of(rolling), start) != 0:
            raise MemoryError(NO_MEMORY)

    return cut


@overload_method(RollingType, "at")
def _at(rolling, start, n):
    dtype = rolling.sample

    def at(rolling, start, n):
        words = carray(words_of(rolling), (WORDS,), np.int64)
        if n < 0 or start < words[START] or start > words[STOP] or n > words[STOP] - start:
            raise IndexError(VIEWS_OUTSIDE)
        data = call_with_two(words[AT], address_of(rolling), start, n)
        if data == 0:
            raise MemoryError(NO_MEMORY)
        return carray(address_as_pointer(data), (n,), dtype)

    return at
