"""The types of a kernel without its machine code.

Declaring an operator needs to know whether its kernel compiles and what it returns. Numba's type
inference tells both. Lowering and optimising, which take most of a compilation, are left for later
where the code would not be used: a region calls a kernel that emits with another type of `out`, and
joins loops over samples.
"""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import errors
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, compile_extra
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.registry import cpu_target
from numba.core.typed_passes import NopythonTypeInference
from numba.extending import models, overload_attribute, overload_method, register_model
from numba.np.numpy_support import from_dtype

from xstream.kernels._emitter import checked_emit
from xstream.kernels._inner import INNER

__all__ = ["DeclaredOut", "inferred"]


@register_pass(mutates_CFG=False, analysis_only=True)
class _TypesAreEnough(FunctionPass):
    """The result of the compilation is the type that the function returns."""

    _name = "xstream_types_are_enough"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.cr = state.return_type
        return False


class _Inference(CompilerBase):
    """Numba's compiler up to type inference."""

    def define_pipelines(self) -> list[Any]:
        passes = PassManager("xstream_inference")
        passes.passes.extend(DefaultPassBuilder.define_untyped_pipeline(self.state).passes)
        passes.add_pass(NopythonTypeInference, "nopython frontend")
        passes.add_pass(_TypesAreEnough, "the types are enough")
        passes.finalize()
        return [passes]


def inferred(dispatcher: Any, signature: tuple[Any, ...]) -> Any:
    """The type that a jitted function returns for arguments of these types; a NumbaError if there
    is none."""
    flags = Flags()
    cpu_target.options.parse_as_flags(flags, dispatcher.targetoptions)
    return compile_extra(
        cpu_target.typing_context, cpu_target.target_context, dispatcher.py_func, signature,
        None, flags, {}, pipeline_class=_Inference,
    )  # fmt: skip


# -- the `out` of a kernel that emits ------------------------------------------------------------


class DeclaredOut(types.Type):
    """An `out` that only checks what is emitted, which compiles faster than the real one.

    It is stricter than the real one: values that it cannot decide about are refused, and the
    kernel has to be typed again with the real `out`.
    """

    def __init__(self, fields: tuple[tuple[str, str], ...]) -> None:
        self.fields = fields
        super().__init__(name=f"DeclaredOut({fields})")


@register_model(DeclaredOut)
class _DeclaredOutModel(models.PrimitiveModel):
    def __init__(self, manager: Any, out: Any) -> None:
        super().__init__(manager, out, ir.IntType(64))


def _check(out: DeclaredOut, values: Any) -> None:
    checked_emit(out, values)
    if len(values) == 1 and isinstance(values[0], types.StarArgTuple | types.StarArgUniTuple):
        values = values[0].types
    for (kind, dtype), value in zip(out.fields, values, strict=True):
        if kind == "segment":
            wanted = from_dtype(np.lib.format.descr_to_dtype(literal_eval(dtype)))
            have = value.dtype if isinstance(value, types.Array) and value.ndim == 1 else None
        else:
            wanted, have = from_dtype(np.dtype(dtype)), value
        numbers = isinstance(have, types.Number | types.Boolean)
        simple = numbers and isinstance(wanted, types.Number | types.Boolean)
        if not simple and have != wanted:
            raise errors.TypingError("the real out= decides")
        if simple and isinstance(have, types.Complex) and not isinstance(wanted, types.Complex):
            raise errors.TypingError("the real out= decides")


@overload_method(DeclaredOut, "emit", jit_options=INNER)
def _emit(out, *values):
    _check(out, values)
    return lambda out, *values: True


@overload_method(DeclaredOut, "emit_at", jit_options=INNER)
def _emit_at(out, start, *values):
    if not isinstance(start, types.Integer):
        raise errors.TypingError("the real out= decides")
    _check(out, values)
    return lambda out, start, *values: True


@overload_attribute(DeclaredOut, "start")
def _start(out):
    return lambda out: 0


@overload_attribute(DeclaredOut, "ended")
def _ended(out):
    return lambda out: False
