"""Numba extensions for kernels: memory by address, calls back into the core.

Addresses are read from the frame at run time and never compiled in, so compiled code can be
cached on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.core.runtime import _nrt_python
from numba.extending import intrinsic, overload
from numba.np.numpy_support import as_dtype

from xstream._native import lib

_WORD = ir.IntType(64)
RAISED_AT = int(lib.XS_FRAME_RAISED)
ALLOCATE_AT = int(lib.XS_FRAME_ALLOCATE)
KEEP_AT = int(lib.XS_FRAME_KEEP)
lib.xs_kernel_numba(_nrt_python.c_helpers["MemInfo_release"])
STATE_MARK = int(lib.XS_STATE_MARK)


@intrinsic
def address_as_pointer(typing_context, address):
    """An integer address as a pointer."""

    def codegen(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), codegen


@intrinsic
def as_readonly(typing_context, array):
    """The same array, typed so that writing to it does not compile."""
    readonly = types.Array(array.dtype, array.ndim, array.layout, readonly=True)

    def codegen(context, builder, signature, arguments):
        return arguments[0]

    return readonly(array), codegen


def _caller(arguments: int) -> Any:
    """An intrinsic that calls the function at an address with 64-bit words as arguments."""

    def codegen(context, builder, signature, values):
        function_type = ir.FunctionType(_WORD, [_WORD] * arguments)
        pointer = builder.inttoptr(values[0], function_type.as_pointer())
        return builder.call(pointer, list(values[1:]))

    if arguments == 1:

        def call(typing_context, address, a):
            return types.int64(types.int64, types.int64), codegen
    elif arguments == 2:

        def call(typing_context, address, a, b):
            return types.int64(types.int64, types.int64, types.int64), codegen
    else:

        def call(typing_context, address, a, b, c, d):
            return types.int64(*[types.int64] * 5), codegen

    return intrinsic(call)


@intrinsic(prefer_literal=True)  # otherwise weak numbers in the tuple would become plain
def guarded_call(typing_context, frame, function, arguments):
    """Call a compiled function; what it raises goes into the frame as a Python exception.

    The result of a call that raised is zero. Only the error takes the GIL.
    """
    inner = function.get_call_type(typing_context, arguments.types, {})
    signature = inner.return_type(frame, function, arguments)

    def codegen(context, builder, signature, values):
        compiled = function.dispatcher.overloads[inner.args]
        context.add_linking_libs([compiled.library])
        packed = cgutils.unpack_tuple(builder, values[2])
        given = [
            context.cast(builder, value, have, want)
            for value, have, want in zip(packed, arguments.types, inner.args, strict=True)
        ]
        status, result = context.call_internal_no_propagate(builder, compiled.fndesc, inner, given)
        kept = cgutils.alloca_once_value(builder, result)
        with cgutils.if_unlikely(builder, status.is_error):
            builder.store(ir.Constant(result.type, None), kept)
            address = _fetch_exception(context, builder, status)
            words = builder.inttoptr(values[0], _WORD.as_pointer())
            builder.store(address, builder.gep(words, [ir.Constant(_WORD, RAISED_AT)]))
        return builder.load(kept)

    return signature, codegen


def _fetch_exception(context, builder, status):
    """Return the exception of a status as the address of an object, a new reference."""
    api = context.get_python_api(builder)
    gil = api.gil_ensure()
    context.call_conv.raise_error(builder, api, status)
    objects = [cgutils.alloca_once_value(builder, ir.Constant(api.pyobj, None)) for _ in range(3)]
    kind = ir.FunctionType(ir.VoidType(), [api.pyobj.as_pointer()] * 3)
    for name in ("PyErr_Fetch", "PyErr_NormalizeException"):
        builder.call(api._get_function(kind, name), objects)
    for spare in (objects[0], objects[2]):
        api.decref(builder.load(spare))
    address = builder.ptrtoint(builder.load(objects[1]), _WORD)
    api.gil_release(gil)
    return address


@intrinsic(prefer_literal=True)
def keep_array(typing_context, frame, field, start, dtype, values, item):
    """Have the core make a segment of an array without a copy, if possible.

    `values` is an array, or with `item` at least 0 the tuple that holds it. An array that is
    returned (`start` is None) may become the segment's memory; an emitted one still belongs to the
    kernel, so only parts of an input are shared. Returns the address to copy to, or 0.
    """
    index = item.literal_value
    array = values if index < 0 else values.types[index]
    same = array.layout == "C" and as_dtype(array.dtype) == as_dtype(dtype.dtype)
    returned = isinstance(start, types.NoneType)

    def codegen(context, builder, signature, arguments):
        value = arguments[4] if index < 0 else builder.extract_value(arguments[4], index)
        view = context.make_array(array)(context, builder, value)
        width = builder.extract_value(view.shape, 0)
        nothing = ir.Constant(_WORD, 0)
        words = builder.inttoptr(arguments[0], _WORD.as_pointer())
        first = nothing if returned else context.cast(builder, arguments[2], start, types.int64)
        given = [arguments[0], arguments[1], width, first]
        if same:
            owner = builder.ptrtoint(view.meminfo, _WORD) if returned else nothing
            given += [builder.ptrtoint(view.data, _WORD), owner]
        at = ir.Constant(_WORD, KEEP_AT if same else ALLOCATE_AT)
        kind = ir.FunctionType(_WORD, [_WORD] * len(given))
        address = builder.inttoptr(builder.load(builder.gep(words, [at])), kind.as_pointer())
        return builder.call(address, given)

    return types.int64(frame, field, start, dtype, values, item), codegen


call_send = _caller(1)
call_grow = _caller(2)
call_allocate = _caller(4)


def fill(target: Any, values: Any) -> None:
    """Copy items; the loop becomes one memcpy and compiles faster than a slice assignment."""
    target[:] = values


@overload(fill)
def _fill(target, values):
    same = isinstance(target.dtype, types.Record) and values.dtype == target.dtype
    if same and values.layout == "C":
        itemsize = as_dtype(target.dtype).itemsize

        def records(target, values):  # byte by byte, or each would be copied by a call
            size = len(values) * itemsize
            to = carray(address_as_pointer(target.ctypes.data), (size,), np.uint8)
            source = carray(address_as_pointer(values.ctypes.data), (size,), np.uint8)
            for i in range(size):
                to[i] = source[i]

        return records

    def implementation(target, values):
        for i in range(len(values)):
            target[i] = values[i]

    return implementation


# -- memory that the caller keeps alive --------------------------------------------------------


def array_at(address: int, length: int, dtype: Any) -> Any:
    """`length` items at an address, for kernels whose arguments are tables of arrays.

    The address is not checked: the caller must keep the memory alive.

    >>> import numpy as np, xstream as xs
    >>> table = np.arange(4)
    >>> xs.array_at(table.ctypes.data, 4, np.int64)
    array([0, 1, 2, 3])
    """
    import ctypes

    size = np.dtype(dtype).itemsize * int(length)
    return np.frombuffer((ctypes.c_char * size).from_address(int(address)), dtype)


@overload(array_at)
def _array_at(address, length, dtype):
    def implementation(address, length, dtype):
        return as_readonly(carray(address_as_pointer(address), (length,), dtype))

    return implementation


# -- state that grows --------------------------------------------------------------------------


def grow(array: Any, length: int) -> Any:
    """Make a state array of a kernel at least `length` items long; new items are zero.

    Use the array that it returns: the one given is no longer part of the state.

    >>> import numpy as np, xstream as xs
    >>> xs.grow(np.ones(2), 4)
    array([1., 1., 0., 0.])
    """
    if length <= len(array):
        return array
    grown = np.zeros(length, array.dtype)
    grown[: len(array)] = array
    return grown


@overload(grow)
def _grow(array, length):
    dtype = as_dtype(array.dtype)  # numpy's, which carray takes for records as well

    def implementation(array, length):
        if length <= len(array):
            return array
        data = array.ctypes.data
        # In front of a state array stand a mark and the core's grow function (kernel.c).
        header = carray(address_as_pointer(data - 16), (2,), np.int64)
        if header[0] != STATE_MARK:
            raise ValueError("xs.grow takes a whole state array, and this is none")
        moved = call_grow(header[1], data, length)
        if moved == 0:
            raise MemoryError("a kernel's state cannot grow: out of memory")
        return carray(address_as_pointer(moved), (length,), dtype)

    return implementation


# -- memory that is needed soon ----------------------------------------------------------------


def prefetch(array: Any, index: int) -> None:
    """Prefetch an item of an array that will be needed soon.

    Only a hint: it changes nothing, and an index outside the array does no harm.

    >>> import numpy as np, xstream as xs
    >>> @xs.kernel(state=np.zeros(1000))
    ... def tally(index, state):
    ...     xs.prefetch(state, index)
    ...     state[index] += 1.0
    ...     return state[index]
    >>> query = xs.Query()
    >>> out = query.source(xs.io.iterable([7, 8, 7], out=int)).map(tally).collect()
    >>> query.run()[out]
    [1.0, 1.0, 2.0]
    """


@intrinsic
def bring_near(typing_context, array, index):
    """The prefetch instruction, into all cache levels, for data that will also be written."""

    def codegen(context, builder, signature, arguments):
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, arguments[0])
        item = cgutils.get_item_pointer(context, builder, kind, view, [arguments[1]])
        address, flag = cgutils.voidptr_t, ir.IntType(32)
        instruction = builder.module.declare_intrinsic(
            "llvm.prefetch", [address],
            ir.FunctionType(ir.VoidType(), [address, flag, flag, flag]),
        )  # fmt: skip
        to_write, all_caches, data = (ir.Constant(flag, value) for value in (1, 3, 1))
        builder.call(
            instruction, [builder.bitcast(item, address), to_write, all_caches, data]
        )  # fmt: skip
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@overload(prefetch)
def _prefetch(array, index):
    def implementation(array, index):
        bring_near(array, index)

    return implementation
