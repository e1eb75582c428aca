"""Weak numbers: Python numbers as arguments of kernels, with the typing rules of numpy 2.

A Python `float`, `int` or `complex` takes the dtype of the other operand (NEP 50): float32 times
1.01 is float32. With a float64, and everywhere else, it is the float64, int64 or complex128 that it
is stored as, with full precision. Numba has no weak numbers, so each of the three has a type here.
Numba resolves every call with plain types instead of them (`_resolve`), which it then casts to;
only the user's own jitted helpers are compiled for weak numbers too.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel.models import ComplexModel, IntegerModel
from numba.core.typing.context import BaseContext
from numba.extending import box, intrinsic, models, register_model, unbox
from numba.np.numpy_support import as_dtype, from_dtype

__all__ = ["WEAK", "Weak", "as_weak"]


class Weak:
    """Base class of the three types; `plain` is the type of the stored value."""

    plain: Any
    example: Any  # a Python number of this kind, to ask numpy with

    def __unliteral__(self) -> Any:  # numba asks where it can do with less than a literal's type
        return self.plain

    def can_convert_to(self, context: Any, other: Any) -> Any:
        return context.can_convert(self.plain, other)

    def unify(self, context: Any, other: Any) -> Any:
        """The type of a variable that holds either type; it is not weak."""
        return context.unify_pairs(self.plain, types.unliteral(other))


class WeakFloat(Weak, types.Float):
    """A Python float."""

    plain, example = types.float64, 1.0

    def __init__(self) -> None:
        types.Number.__init__(self, "weak_float")
        self.bitwidth = 64


class WeakInt(Weak, types.Integer):
    """A Python int of at most 64 bits."""

    plain, example = types.int64, 1

    def __init__(self) -> None:
        types.Integer.__init__(self, "weak_int", bitwidth=64, signed=True)


class WeakComplex(Weak, types.Complex):
    """A Python complex."""

    plain, example = types.complex128, 1j

    def __init__(self) -> None:
        types.Number.__init__(self, "weak_complex")
        self.bitwidth, self.underlying_float = 128, types.float64


@register_model(WeakFloat)
class _WeakFloatModel(models.PrimitiveModel):
    def __init__(self, manager, weak):
        super().__init__(manager, weak, ir.DoubleType())


register_model(WeakInt)(IntegerModel)
register_model(WeakComplex)(ComplexModel)


def _from_python(weak, number, tools):
    return tools.unbox(weak.plain, number)


def _to_python(weak, number, tools):
    return tools.box(weak.plain, number)


for _kind in (WeakFloat, WeakInt, WeakComplex):  # of helpers that Python could call
    unbox(_kind)(_from_python)
    box(_kind)(_to_python)

#: The type for Python numbers of each kind.
WEAK: dict[str, Any] = {"float": WeakFloat(), "int": WeakInt(), "complex": WeakComplex()}
_WEAK_OF = {weak.plain: weak for weak in WEAK.values()}


@intrinsic
def as_weak(typing_context, number):
    """Return the number as a weak one, which takes the dtype of the other operand."""

    def codegen(context, builder, signature, arguments):
        return arguments[0]

    return _WEAK_OF[number](number), codegen


# -- resolving calls ---------------------------------------------------------------------------

_ARITHMETIC = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.neg, operator.pos, abs,
}  # fmt: skip
_COMPARISONS = {
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
}  # fmt: skip
_IN_PLACE = {
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
    operator.imod, operator.ipow,
}  # fmt: skip
_BITWISE = {
    operator.and_, operator.or_, operator.xor, operator.iand, operator.ior, operator.ixor,
}  # fmt: skip
#: Functions that promote their operands to a common dtype, as every ufunc does.
_MEETING = _ARITHMETIC | _COMPARISONS | _IN_PLACE | _BITWISE | {np.where, np.clip, min, max, pow}

_plain_resolve = BaseContext.resolve_function_type


def _resolve(context: Any, function: Any, arguments: Any, named: Any) -> Any:
    """Resolve a call with plain types in place of weak ones."""
    named = dict(named)  # numba also gives an empty tuple
    if not any(isinstance(argument, Weak) for argument in (*arguments, *named.values())):
        return _plain_resolve(context, function, arguments, named)
    if isinstance(function, types.Dispatcher):  # numbers stay weak inside helpers
        return _plain_resolve(context, function, arguments, named)
    called = getattr(function, "typing_key", function)
    meeting = isinstance(called, np.ufunc) or (callable(called) and called in _MEETING)
    met = _met(arguments[1:] if called is np.where else arguments) if meeting else None
    plain = tuple(_plain(argument, met) for argument in arguments)
    found = _plain_resolve(
        context, function, plain, {name: _plain(value, None) for name, value in named.items()}
    )
    if found is None or called not in _ARITHMETIC or not all(map(_is_written, arguments)):
        return found
    weak = _WEAK_OF.get(found.return_type)  # 2 * gain is as weak as gain
    return found if weak is None else found.replace(return_type=weak)


def _is_written(type_: Any) -> bool:
    """Whether a number is Python's own: an argument, or an integer in the kernel's text."""
    return isinstance(type_, Weak | types.IntegerLiteral)


def _met(arguments: Sequence[Any]) -> tuple[Any, bool] | None:
    """The common dtype of the numbers in a call without the weak ones, and whether one is an array.

    None if there is none, or if not all arguments are numbers.
    """
    strong = [argument for argument in arguments if not isinstance(argument, Weak)]
    dtypes, array = [], False
    for argument in strong:
        item = argument.dtype if isinstance(argument, types.Array) else types.unliteral(argument)
        if not isinstance(item, types.Number | types.Boolean):
            return None
        array = array or isinstance(argument, types.Array)
        dtypes.append(as_dtype(item))
    return (np.result_type(*dtypes), array) if dtypes else None


def _plain(argument: Any, met: tuple[Any, bool] | None) -> Any:
    """The plain type of an argument, given the dtype of the other operands."""
    if not isinstance(argument, Weak):
        return argument
    if met is None:
        return argument.plain
    dtype, array = met
    if isinstance(argument, WeakInt) and dtype.kind in "iu" and not array:
        # Numba calculates with single integers in 64 bits, whatever they are stored in.
        return types.uint64 if dtype == np.uint64 else types.int64
    return from_dtype(np.result_type(dtype, argument.example))


BaseContext.resolve_function_type = _resolve
