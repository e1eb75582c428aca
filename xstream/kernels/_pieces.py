"""Segments in compiled kernels with `pieces=True`: walked where they are, never made contiguous.

The core gives the address of the samples, or that of a table with the position and the address of
every piece (xstream/kernels/pieces.c). Both are read at run time, so compiled code can be cached.
"""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import RefType, iternext_impl, lower_builtin
from numba.extending import intrinsic, models, overload, overload_method, register_model
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from xstream.kernels._inner import INNER, inner_jit
from xstream.kernels._links import block, member, readonly, word
from xstream.kernels.pieces import PART, PART_OUTSIDE, first_part, is_one_part

__all__ = ["PiecesType", "pieces_maker", "pieces_of"]

_WORD = ir.IntType(64)
#: The words of a table: the number of pieces, the position and the address of each, the width.
COUNT, POSITION, ADDRESS, PIECE_WORDS = 0, 1, 2, 2


class PiecesType(types.Type):
    """The type of a segment that is walked; its dtype is described as numpy's files do it."""

    def __init__(self, described: str) -> None:
        self.sample = np.lib.format.descr_to_dtype(literal_eval(described))
        self.dtype = from_dtype(self.sample)
        self.array = types.Array(self.dtype, 1, "C", readonly=True)
        super().__init__(name=f"Pieces({described})")


@register_model(PiecesType)
class _PiecesModel(models.StructModel):
    def __init__(self, manager, pieces):
        members = [("address", types.int64), ("width", types.int64), ("listed", types.int64)]
        super().__init__(manager, pieces, members)


def _described(dtype: Any) -> str:
    return repr(np.lib.format.dtype_to_descr(dtype))


def pieces_maker(described: str) -> Any:
    """A function that makes a walked segment of words of the frame."""
    pieces = PiecesType(described)

    @intrinsic
    def make(typing_context, address, width, listed):
        def codegen(context, builder, signature, arguments):
            made = cgutils.create_struct_proxy(pieces)(context, builder)
            made.address, made.width, made.listed = arguments
            return made._getvalue()

        return pieces(types.int64, types.int64, types.int64), codegen

    return make


@intrinsic
def pieces_of(typing_context, array):
    """An array as a walked segment of one piece. The caller keeps the array alive."""
    from numba.np.numpy_support import as_dtype

    pieces = PiecesType(_described(as_dtype(array.dtype)))

    def codegen(context, builder, signature, arguments):
        view = make_array(array)(context, builder, arguments[0])
        made = cgutils.create_struct_proxy(pieces)(context, builder)
        made.address = builder.ptrtoint(view.data, _WORD)
        made.width = cgutils.unpack_tuple(builder, view.shape)[0]
        made.listed = ir.Constant(_WORD, 0)
        return made._getvalue()

    return pieces(array), codegen


address_of, width_of, listed_of = map(member, ("address", "width", "listed"))


@overload(len)
def _len(window):
    if isinstance(window, PiecesType):
        return lambda window: width_of(window)
    return None


# -- parts ---------------------------------------------------------------------------------------


@overload_method(PiecesType, "part", jit_options=INNER)
def _part(window, first, n):
    dtype, size = window.dtype, window.sample.itemsize

    def part(window, first, n):
        width = width_of(window)
        if first < 0 or first > width or n < 0:
            raise IndexError(PART_OUTSIDE)
        n = min(n, width - first)
        if listed_of(window) == 0:
            return readonly(block(address_of(window) + first * size, n, dtype))
        return called_apart(window, first, n)

    return part


@overload(is_one_part)
def _is_one_part(window):
    if isinstance(window, PiecesType):
        return lambda window: listed_of(window) == 0 and width_of(window) <= PART
    return lambda window: False


@overload(first_part)
def _first_part(window):
    if not isinstance(window, PiecesType):
        return lambda window: window.part(0, PART)
    dtype = window.dtype
    return lambda window: readonly(block(address_of(window), min(width_of(window), PART), dtype))


@intrinsic
def copy_to(typing_context, array, first, address, count):
    """Copy samples from an address to a place in an array: a loop would not become a memcpy."""

    def codegen(context, builder, signature, arguments):
        kind = signature.args[0]
        values, first, address, count = arguments
        view = make_array(kind)(context, builder, values)
        item = context.get_data_type(kind.dtype)
        to = cgutils.gep(builder, view.data, first)
        source = builder.inttoptr(address, item.as_pointer())
        cgutils.raw_memcpy(builder, to, source, count, context.get_abi_sizeof(item))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, types.int64), codegen


@inner_jit
def part_of_list(window, first, n, size, like):
    """A part of a segment of several pieces."""
    table = address_of(window)
    low, high = 0, word(table, COUNT)  # bisection: the piece that holds the first sample
    while high - low > 1:
        middle = (low + high) // 2
        if word(table, POSITION + PIECE_WORDS * middle) <= first:
            low = middle
        else:
            high = middle
    at = table + 8 * PIECE_WORDS * low
    inside = first - word(at, POSITION)
    if first + n <= word(at, POSITION + PIECE_WORDS):
        return readonly(block(word(at, ADDRESS) + inside * size, n, like.dtype))
    joined, done = np.empty(n, like.dtype), 0
    while done < n:
        some = min(n - done, word(at, POSITION + PIECE_WORDS) - first - done)
        copy_to(joined, done, word(at, ADDRESS) + inside * size, some)
        done += some
        inside = 0
        at += 8 * PIECE_WORDS
    return readonly(joined)


@intrinsic
def called_apart(typing_context, window, first, n):
    """Call `part_of_list` without inlining it, so that what calls it stays small."""
    like = types.Array(window.dtype, 1, "C")
    given = (window, types.int64, types.int64, types.int64, like)
    apart = types.Dispatcher(part_of_list)
    inner = apart.get_call_type(typing_context, given, {})

    def codegen(context, builder, signature, arguments):
        apart.dispatcher.compile(inner.args)  # debug mode has a copy of its own
        compiled = apart.dispatcher.overloads[inner.args]
        context.add_linking_libs([compiled.library])
        function = context.declare_function(builder.module, compiled.fndesc)
        size = context.get_constant(types.int64, window.sample.itemsize)
        empty = make_array(like)(context, builder)._getvalue()
        status, result = context.call_conv.call_function(
            builder, function, inner.return_type, inner.args, [*arguments, size, empty],
            attrs=("noinline",),
        )  # fmt: skip
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result

    return window.array(window, types.int64, types.int64), codegen


# -- pieces --------------------------------------------------------------------------------------


class PieceIterator(types.SimpleIteratorType):
    """The type of an iterator over pieces."""

    def __init__(self, pieces: PiecesType) -> None:
        super().__init__(f"PieceIterator({pieces})", pieces.array)


class PieceRange(types.IterableType):
    """The type of `window.pieces()`."""

    def __init__(self, pieces: PiecesType) -> None:
        self._iterator = PieceIterator(pieces)
        super().__init__(name=f"PieceRange({pieces})")

    @property
    def iterator_type(self) -> PieceIterator:
        return self._iterator


register_model(PieceRange)(_PiecesModel)


@register_model(PieceIterator)
class _IteratorModel(models.StructModel):
    def __init__(self, manager, iterator):
        # Where the words of the next piece are, how many pieces are left, and the segment.
        members = [(name, types.EphemeralPointer(types.int64)) for name in ("at", "left")]
        members += [(name, types.int64) for name in ("address", "width", "listed")]
        super().__init__(manager, iterator, members)


@overload_method(PiecesType, "pieces")
def _pieces(window):
    return lambda window: range_of(window)


@intrinsic
def range_of(typing_context, window):
    """The pieces of a segment, to iterate over."""

    def codegen(context, builder, signature, arguments):
        return arguments[0]

    return PieceRange(window)(window), codegen


@lower_builtin("getiter", PieceRange)
def _begin(context, builder, signature, arguments):
    given = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
    made = cgutils.create_struct_proxy(signature.return_type)(context, builder)
    made.address, made.width, made.listed = given.address, given.width, given.listed
    nothing = ir.Constant(_WORD, 0)
    left = cgutils.alloca_once_value(
        builder, builder.zext(builder.icmp_signed("!=", given.width, nothing), _WORD)
    )
    with builder.if_then(builder.icmp_signed("!=", given.listed, nothing)):
        words = builder.inttoptr(given.address, _WORD.as_pointer())
        builder.store(builder.load(words), left)
    made.left = left
    made.at = cgutils.alloca_once_value(builder, given.address)
    return made._getvalue()


@lower_builtin("iternext", PieceIterator)
@iternext_impl(RefType.UNTRACKED)
def _next_piece(context, builder, signature, arguments, result):
    kind = signature.args[0]
    iterator = cgutils.create_struct_proxy(kind)(context, builder, value=arguments[0])
    array, one = kind.yield_type, ir.Constant(_WORD, 1)
    left = builder.load(iterator.left)
    more = builder.icmp_signed(">", left, ir.Constant(_WORD, 0))
    result.set_valid(more)
    with builder.if_then(more):
        builder.store(builder.sub(left, one), iterator.left)
        at = builder.load(iterator.at)
        listed = builder.icmp_signed("!=", iterator.listed, ir.Constant(_WORD, 0))
        address = cgutils.alloca_once_value(builder, iterator.address)
        width = cgutils.alloca_once_value(builder, iterator.width)
        with builder.if_then(listed):
            words = builder.inttoptr(at, _WORD.as_pointer())
            first, data, stop = (
                builder.load(builder.gep(words, [ir.Constant(_WORD, number)]))
                for number in (POSITION, ADDRESS, POSITION + PIECE_WORDS)
            )
            builder.store(data, address)
            builder.store(builder.sub(stop, first), width)
            builder.store(builder.add(at, ir.Constant(_WORD, 8 * PIECE_WORDS)), iterator.at)
        view = make_array(array)(context, builder)
        item = context.get_data_type(array.dtype)
        size = context.get_constant(types.intp, context.get_abi_sizeof(item))
        data = builder.inttoptr(builder.load(address), item.as_pointer())
        populate_array(view, data, [builder.load(width)], [size], size, None)
        result.yield_(view._getvalue())
