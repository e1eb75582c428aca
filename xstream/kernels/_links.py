"""Numba intrinsics for regions: words of the frame, calls of kernels, and `emit` as a direct
call of the next stage.

Every function here has a counterpart in `_numba`, for kernels that run alone and whose results
go through the core.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils, errors
from numba.core.imputils import impl_ret_borrowed
from numba.extending import (
    intrinsic,
    models,
    overload_attribute,
    overload_method,
    register_model,
)
from numba.np.arrayobj import make_array, populate_array

from xstream._native import lib
from xstream.kernels._emitter import checked_emit
from xstream.kernels._inner import INNER
from xstream.kernels._numba import RAISED_AT, _fetch_exception, fill

_WORD = ir.IntType(64)
STATUS, ENDED = int(lib.XS_REGION_STATUS), int(lib.XS_REGION_ENDED)
ALLOCATE, SEND = int(lib.XS_FRAME_ALLOCATE), int(lib.XS_FRAME_SEND)
OUTSIDE, KEEP = int(lib.XS_REGION_OUTSIDE), int(lib.XS_REGION_KEEP)
#: Indices lie between -INDEX_END and INDEX_END (xstream/sigseg/internal.h).
INDEX_END = 2**62


# -- words of a frame --------------------------------------------------------------------------


def _place(builder: Any, frame: Any, index: Any, item: Any = _WORD) -> Any:
    return builder.gep(builder.inttoptr(frame, item.as_pointer()), [index])


@intrinsic
def word(typing_context, frame, index):
    """A word of a frame."""

    def codegen(context, builder, signature, arguments):
        return builder.load(_place(builder, *arguments))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def real(typing_context, frame, index):
    """A word of a frame that is a float."""

    def codegen(context, builder, signature, arguments):
        return builder.load(_place(builder, *arguments, ir.DoubleType()))

    return types.float64(types.int64, types.int64), codegen


@intrinsic
def put(typing_context, frame, index, value):
    """Set a word of a frame."""

    def codegen(context, builder, signature, arguments):
        builder.store(arguments[2], _place(builder, *arguments[:2]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def put_real(typing_context, frame, index, value):
    """Set a word of a frame to a float."""

    def codegen(context, builder, signature, arguments):
        builder.store(arguments[2], _place(builder, *arguments[:2], ir.DoubleType()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64), codegen


@intrinsic
def count(typing_context, frame, index, more):
    """Add to a word of a frame."""

    def codegen(context, builder, signature, arguments):
        place = _place(builder, *arguments[:2])
        builder.store(builder.add(builder.load(place), arguments[2]), place)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


# -- arrays ------------------------------------------------------------------------------------


@intrinsic
def block(typing_context, address, length, dtype):
    """`length` samples at an address, to be filled."""
    array = types.Array(dtype.dtype, 1, "C")

    def codegen(context, builder, signature, arguments):
        view = make_array(array)(context, builder)
        item = context.get_data_type(array.dtype)
        size = context.get_constant(types.intp, context.get_abi_sizeof(item))
        populate_array(
            view, builder.inttoptr(arguments[0], item.as_pointer()), [arguments[1]], [size], size,
            None,
        )  # fmt: skip
        return view._getvalue()

    return array(types.int64, types.int64, dtype), codegen


@intrinsic
def readonly(typing_context, array):
    """The same array, typed so that writing to it does not compile; it keeps the memory alive."""
    kind = types.Array(array.dtype, 1, "C", readonly=True)

    def codegen(context, builder, signature, arguments):
        return impl_ret_borrowed(context, builder, kind, arguments[0])

    return kind(array), codegen


def _copied(values: Any, like: Any) -> Any:
    scratch = np.empty(len(values), like.dtype)
    fill(scratch, values)
    return scratch


@intrinsic
def window(typing_context, values, dtype):
    """Samples for the next kernel: the given array, or a copy if the type differs."""
    kind = types.Array(dtype.dtype, 1, "C", readonly=True)
    same = isinstance(values, types.Array) and values.layout == "C" and values.dtype == dtype.dtype

    def codegen(context, builder, signature, arguments):
        if same:
            return impl_ret_borrowed(context, builder, kind, arguments[0])
        like = types.Array(dtype.dtype, 1, "C")
        empty = make_array(like)(context, builder)._getvalue()
        return context.compile_internal(builder, _copied, like(values, like), [arguments[0], empty])

    return kind(values, dtype), codegen


# -- calls of the core -------------------------------------------------------------------------


def _calling(index: int, names: tuple[str, ...]) -> Any:
    """An intrinsic that calls the function at a word of the frame, which is the first argument."""

    def codegen(context, builder, signature, arguments):
        place = _place(builder, arguments[0], ir.Constant(_WORD, index))
        kind = ir.FunctionType(_WORD, [_WORD] * len(names)).as_pointer()
        return builder.call(builder.inttoptr(builder.load(place), kind), list(arguments))

    signature = types.int64(*[types.int64] * len(names))
    if len(names) == 1:

        def call(typing_context, region):
            return signature, codegen
    else:

        def call(typing_context, region, a, b, c):
            return signature, codegen

    return intrinsic(call)


#: The address of a new output segment, or 0: (region, field, width, start).
allocate = _calling(ALLOCATE, ("region", "field", "width", "start"))
#: Emit the current outputs; 0 on success: (region).
send = _calling(SEND, ("region",))
#: Fail because of a segment outside the indices of a signal: (region, stage, start, width).
refuse = _calling(OUTSIDE, ("region", "stage", "start", "width"))


@intrinsic
def keep(typing_context, region, stage, field, array, start):
    """Have the core copy an array that a stage failed on.

    The array is an argument, and not its address: numba frees an array after its last use.
    """

    def codegen(context, builder, signature, arguments):
        region, stage, field, samples, start = arguments
        view = make_array(array)(context, builder, samples)
        given = [
            region, stage, field, builder.ptrtoint(view.data, _WORD),
            cgutils.unpack_tuple(builder, view.shape)[0], start,
        ]  # fmt: skip
        place = _place(builder, region, ir.Constant(_WORD, KEEP))
        kind = ir.FunctionType(ir.VoidType(), [_WORD] * len(given)).as_pointer()
        builder.call(builder.inttoptr(builder.load(place), kind), given)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, array, types.int64), codegen


@njit(error_model="numpy")
def scaled(start, num, den):
    """start * num / den, rounded down; past the end of the indices where it does not fit."""
    whole, rest = start // den, start % den
    if whole > INDEX_END // num:
        return INDEX_END + 1
    if whole < -INDEX_END // num:
        return -INDEX_END - 1
    return whole * num + rest * num // den


# -- calls of kernels ---------------------------------------------------------------------------


def _call_compiled(context: Any, builder: Any, function: Any, inner: Any, packed: Any) -> Any:
    compiled = function.dispatcher.overloads[inner.args]
    context.add_linking_libs([compiled.library])
    items, types_ = packed
    given = [
        context.cast(builder, value, have, want)
        for value, have, want in zip(items, types_, inner.args, strict=True)
    ]
    return context.call_internal_no_propagate(builder, compiled.fndesc, inner, given)


def _attempt(note: bool, result: bool) -> Any:
    """An intrinsic that calls a kernel and returns whether it raised, and its result if wanted."""

    def attempt(typing_context, frame, function, arguments):
        if isinstance(function, types.RecursiveCall):
            raise errors.TypingError("a recursion through what follows a kernel")
        inner = function.get_call_type(typing_context, arguments.types, {})
        kind = inner.return_type
        outcome = types.Tuple((types.boolean, kind)) if result else types.boolean

        def codegen(context, builder, signature, values):
            packed = cgutils.unpack_tuple(builder, values[2]), arguments.types
            status, returned = _call_compiled(context, builder, function, inner, packed)
            null = ir.Constant(returned.type, None)
            kept = builder.select(status.is_error, null, returned)
            if note:
                with cgutils.if_unlikely(builder, status.is_error):
                    exception = _fetch_exception(context, builder, status)
                    at = ir.Constant(_WORD, RAISED_AT)
                    builder.store(exception, _place(builder, values[0], at))
            if result:
                return context.make_tuple(builder, outcome, [status.is_error, kept])
            if context.enable_nrt:
                context.nrt.decref(builder, kind, kept)
            return status.is_error

        return outcome(frame, function, arguments), codegen

    # Or numba would give weak numbers in the tuple of arguments their plain types.
    return intrinsic(prefer_literal=True)(attempt)


#: Call a kernel; what it raises goes into its frame as a Python exception.
noted = _attempt(note=True, result=True)
#: The same for a kernel whose result is not used.
done = _attempt(note=True, result=False)
#: Without a record, for loops over samples: running the tuple again finds the kernel.
tried = _attempt(note=False, result=True)


# -- emitting ----------------------------------------------------------------------------------


class LinkType(types.Type):
    """The type of `out` in a kernel whose tuples go straight to the next stage of a region."""

    def __init__(self, name: str, stage: int, fields: tuple[tuple[str, str], ...]) -> None:
        self.stage, self.fields = stage, fields
        #: The function that receives emitted values; known once it is compiled.
        self.after: Any = None
        super().__init__(name=f"Link({name}, {stage})")


@register_model(LinkType)
class _LinkModel(models.StructModel):
    def __init__(self, manager, link):
        members = [("region", types.int64), ("start", types.int64)]
        super().__init__(manager, link, members)


def link_maker(link: LinkType) -> Any:
    """A function that makes `out` from a region's frame and the start of the tuple."""

    @intrinsic
    def make(typing_context, region, start):
        def codegen(context, builder, signature, arguments):
            made = cgutils.create_struct_proxy(link)(context, builder)
            made.region, made.start = arguments
            return made._getvalue()

        return link(types.int64, types.int64), codegen

    return make


def member(name: str) -> Any:
    """A function that reads a word of a struct of this package: of `out` or of a window."""

    @intrinsic
    def read(typing_context, struct):
        def codegen(context, builder, signature, arguments):
            proxy = cgutils.create_struct_proxy(signature.args[0])
            return getattr(proxy(context, builder, value=arguments[0]), name)

        return types.int64(struct), codegen

    return read


region_of, start_of = member("region"), member("start")


@overload_method(LinkType, "emit", jit_options=INNER)
def _emit(out, *values):
    checked_emit(out, values)
    after = out.after
    return lambda out, *values: after(region_of(out), start_of(out), 0, values)


@overload_method(LinkType, "emit_at", jit_options=INNER)
def _emit_at(out, start, *values):
    checked_emit(out, values)
    after = out.after
    return lambda out, start, *values: after(region_of(out), start_of(out), start, values)


@overload_attribute(LinkType, "start")
def _start(out):
    number = out.stage + 1  # at the end there is no tuple; outputs start where the last one did
    return lambda out: 0 if word(region_of(out), ENDED) == number else start_of(out)


@overload_attribute(LinkType, "ended")
def _ended(out):
    number = out.stage + 1
    return lambda out: word(region_of(out), ENDED) == number
