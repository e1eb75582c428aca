"""Compilation in debug mode: every index and every division is checked.

`with checks():` has numba compile with bounds checks whose errors name the index. Bounds checks
are a flag of each jitted function, and the helpers that a kernel calls are separate functions,
which are compiled once for all kernels. Debug mode therefore replaces each helper by a copy that is
compiled with checks. Division by zero depends on numba's `error_model`, which helpers inherit from
the kernel unless they declare one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUTargetOptions
from numba.core.registry import CPUDispatcher, cpu_target

from xstream._native import ffi, lib

#: The symbol by which compiled and cached code finds the function of the core.
NOTE = "xs_note_index"
binding.add_symbol(NOTE, int(ffi.cast("intptr_t", ffi.addressof(lib, NOTE))))

_WORD = ir.IntType(64)
_twins: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_finalize = CPUTargetOptions.finalize


class OutOfBoundsError(IndexError):
    """An index outside an array; the core has recorded its value."""

    def described(self) -> IndexError:
        """Return the error with the numbers of the thread's last out-of-bounds index."""
        index, axis, size = lib.xs_noted_index()[0:3]
        return IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")


@contextmanager
def checks() -> Iterator[None]:
    """Have numba compile index checks within this context.

    Numba compiles in one thread at a time; other threads wait.
    """
    changed = {
        (CPUTargetOptions, "finalize"): _finalize_checked,
        (cgutils, "do_boundscheck"): _check_index,
        (types.Dispatcher, "dispatcher"): property(_twin_of),
    }
    # Numba's own helpers are compiled on demand, and their cache key ignores bounds checks.
    internal = cpu_target.target_context.cached_internal_func
    with global_compiler_lock:
        before = {(owner, name): getattr(owner, name) for owner, name in changed}
        compiled_before = dict(internal)
        try:
            internal.clear()
            for (owner, name), value in changed.items():
                setattr(owner, name, value)
            yield
        finally:
            for (owner, name), value in before.items():
                setattr(owner, name, value)
            internal.clear()
            internal.update(compiled_before)


def own_twin(dispatcher: Any) -> Any:
    """Register a jitted function that only debug mode uses, so that it needs no separate copy."""
    _twins[dispatcher] = dispatcher
    return dispatcher


def _twin_of(type_: Any) -> Any:
    """Return the copy of a type's jitted function that is compiled with checks."""
    dispatcher = type_._get_object()
    if type(dispatcher) is not CPUDispatcher:
        return dispatcher
    twin = _twins.get(dispatcher)
    if twin is None:
        twin = CPUDispatcher(
            dispatcher.py_func, dispatcher.locals, dispatcher.targetoptions,
            dispatcher._compiler.pipeline_class,
        )  # fmt: skip
        _twins[dispatcher] = own_twin(twin)
    return twin


def _finalize_checked(self: Any, flags: Any, options: Any) -> None:
    flags.boundscheck = True
    _finalize(self, flags, options)


def _check_index(context: Any, builder: Any, index: Any, size: Any, axis: Any = None) -> None:
    """Check an index like numba does, and record the index that is out of bounds."""
    outside = builder.icmp_unsigned(">=", index, size)
    with cgutils.if_unlikely(builder, outside):
        # The size was already added to a negative index.
        negative = builder.icmp_signed("<", index, index.type(0))
        written = builder.select(negative, builder.sub(index, size), index)
        kind = ir.FunctionType(ir.VoidType(), [_WORD] * 3)
        note = cgutils.get_or_insert_function(builder.module, kind, NOTE)
        numbers = (written, axis if isinstance(axis, ir.Value) else _WORD(axis or 0), size)
        builder.call(note, [builder.zext(n, _WORD) if n.type.width < 64 else n for n in numbers])
        context.call_conv.return_user_exc(builder, OutOfBoundsError, ())
