"""The frame of a kernel: the layout of its words and the expressions that read them.

The core fills a frame of 64-bit words (xstream/kernels/kernel.h) and calls an adapter:

    words 0..7    self, allocate, send, raised, verdict, ended, keep, pieces
    inputs        a segment takes three (address, width, start), a scalar one; all fields of the
                  tuple are there, and the kernel gets those that its parameters name
    arguments     an array takes two (address, length), a complex number too, other numbers one
    states        address and length each; of a rolling segment the address alone
    outputs       one per field; those of segments are unused, the core keeps them
"""

from __future__ import annotations

from ast import literal_eval
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xstream._native import lib
from xstream.engine.schema import Field, FieldType, Out, Scalar, Schema, Segment, scalar_of
from xstream.errors import KernelError
from xstream.kernels._arguments import ArgumentType, argument_words
from xstream.kernels.kernel import Kernel
from xstream.kernels.rolling import Rolling
from xstream.sigseg import Timebase

_START_RULES = {"input": 0, "scaled": 1, "running": 2, "given": 3}


@dataclass(frozen=True, slots=True)
class OutputRule:
    """An output field for the core: bytes per sample (0: a scalar) and where it starts."""

    itemsize: int
    start_rule: int = 0
    num: int = 1
    den: int = 1


@dataclass(slots=True)
class Word:
    """The position of a value in the frame, and the expression that reads it."""

    expression: str
    numba_type: Any
    address: str = ""  # the word that holds an array's address


class Layout:
    """Allocates the words of a frame and generates the expressions that read them."""

    def __init__(self) -> None:
        self.next = int(lib.XS_FRAME_INPUTS)
        self.constants: dict[str, str] = {}

    def dtype_name(self, dtype: np.dtype[Any]) -> str:
        """The expression for a dtype; records become constants of the module."""
        if dtype.names is None:
            return f"np.{dtype.name}" if dtype.kind != "b" else "np.bool_"
        text = repr(dtype)
        return self.constants.setdefault(text, f"D{len(self.constants)}")

    def take(self, words: int) -> int:
        """Allocate words and return the first one."""
        at = self.next
        self.next += words
        return at

    def array(self, at: int, dtype: np.dtype[Any], readonly: bool) -> Word:
        """An array whose address and length are at `at`."""
        from numba import types
        from numba.np.numpy_support import from_dtype

        try:
            item = from_dtype(dtype)
        except NotImplementedError:
            item = None
        if item is None or dtype == np.float16:
            raise KernelError(f"numba cannot express dtype {dtype}: convert it first")
        array = f"carray(_at(w[{at}]), (w[{at + 1}],), {self.dtype_name(dtype)})"
        numba_type = types.Array(item, 1, "C", readonly=readonly)
        return Word(f"_readonly({array})" if readonly else array, numba_type, f"w[{at}]")

    def scalar(self, at: int, kind: str) -> Word:
        """A number of a kind at `at`."""
        from numba import types

        if kind == "float64":
            return Word(f"f[{at}]", types.float64)
        if kind == "bool":
            return Word(f"(w[{at}] != 0)", types.boolean)
        if kind == "int64":
            return Word(f"w[{at}]", types.int64)
        words = "f" if Scalar(kind).slot == "float64" else "w"
        return Word(f"np.{kind}({words}[{at}])", getattr(types, kind))

    def pieces(self, at: int, dtype: np.dtype[Any], number: int) -> Word:
        """A segment that is walked, of input field `number`; its words are at `at`."""
        from xstream.kernels._pieces import PiecesType

        self.array(at, dtype, readonly=True)  # refuses what numba cannot express
        listed = f"w[{int(lib.XS_FRAME_PIECES)}] >> {number} & 1"
        return Word(
            f"{self.pieces_maker(dtype)}(w[{at}], w[{at + 1}], {listed})",
            PiecesType(described(dtype)), f"w[{at}]",
        )  # fmt: skip

    def pieces_maker(self, dtype: np.dtype[Any]) -> str:
        """The name of the function that makes walked segments of this type."""
        text = f"pieces_maker({described(dtype)!r})"
        return self.constants.setdefault(text, f"P{len(self.constants)}")

    def field(self, type_: FieldType, walked: int = -1) -> Word:
        """A field of the tuple, in the words that come next; `walked` is its number if it is."""
        if isinstance(type_, Segment) and walked >= 0:
            return self.pieces(self.take(3), type_.dtype, walked)
        if isinstance(type_, Segment):
            return self.array(self.take(3), type_.dtype, readonly=True)
        return self.scalar(self.take(1), type_.kind)

    def state(self, state: NDArray[Any] | Rolling) -> Word:
        """A state, in the two words that come next."""
        at = self.take(2)
        if not isinstance(state, Rolling):
            return self.array(at, state.dtype, readonly=False)
        from xstream.kernels._rolling import RollingType

        text = f"rolling_maker({described(state.sample)!r})"
        maker = self.constants.setdefault(text, f"R{len(self.constants)}")
        return Word(f"{maker}(w[{at}])", RollingType(described(state.sample)))

    def argument(self, type_: ArgumentType) -> Word:
        """An argument, in the words that come next."""
        at = self.take(argument_words(type_))
        if isinstance(type_, np.dtype):
            return self.array(at, type_, readonly=True)
        return _python_number(at, type_) if type_ in _PYTHON else _numpy_number(at, type_)


def described(dtype: np.dtype[Any]) -> str:
    """A dtype as text, as numpy's files have it."""
    return repr(np.lib.format.dtype_to_descr(dtype))


#: Python's numbers: how each is read from the frame.
_PYTHON = {"float": "f[{0}]", "int": "w[{0}]", "complex": "complex(f[{0}], f[{1}])"}


def _python_number(at: int, kind: str) -> Word:
    from xstream.kernels._weak import WEAK

    return Word(f"_weak({_PYTHON[kind].format(at, at + 1)})", WEAK[kind])


def _numpy_number(at: int, kind: str) -> Word:
    from numba import types

    name = "bool_" if kind == "bool" else kind
    read = "complex" if kind[0] == "c" else "float" if kind[0] == "f" else "int"
    numba_type = types.boolean if kind == "bool" else getattr(types, kind)
    return Word(f"np.{name}({_PYTHON[read].format(at, at + 1)})", numba_type)


def bound(kernel: Kernel, inputs: Schema, arguments: int) -> list[int]:
    """For each data parameter, the number of its field, or of its argument after the fields.

    Parameters take the fields of their names, and arguments fill up the rest. Where the names do
    not work out so, and for the only field of a stream, fields are taken in order.
    """
    parameters = kernel.data_parameters()
    names = [field.name for field in inputs]
    numbers = {name: names.index(name) for name in parameters if name in names}
    rest = [name for name in parameters if name not in numbers]
    by_name = len(names) > 1 and numbers and len(rest) == arguments
    if not by_name:
        if len(parameters) != len(names) + arguments:
            raise KernelError(_misfit(kernel, names, arguments))
        numbers = dict(zip(parameters, range(len(names)), strict=False))
        rest = list(parameters[len(names) :])
    numbers |= {name: len(names) + i for i, name in enumerate(rest)}
    return [numbers[name] for name in parameters]


def _misfit(kernel: Kernel, names: list[str], arguments: int) -> str:
    """Why parameters do not fit the fields and arguments."""
    parameters = kernel.data_parameters()
    same = [name for name in parameters if name in names]
    named = f"; the names {', '.join(same)} are found in both" if same and len(names) > 1 else ""
    return (
        f"kernel {kernel.name!r} takes {len(parameters)} values ({', '.join(parameters)}) and gets "
        f"{len(names) + arguments}: {len(names)} fields ({', '.join(names)}) and {arguments} "
        f"arguments{named}"
    )


def used_fields(sources: list[int], inputs: Schema) -> int:
    """The fields that a kernel needs, by bit: widths and starts follow from the first segment."""
    first = inputs.segment_bits & -inputs.segment_bits
    return first | sum(1 << source for source in sources if source < len(inputs))


def segment_facts(inputs: Schema) -> list[str]:
    """The dtypes of the segments in a tuple."""
    return [str(type_.dtype) for type_ in inputs.types if isinstance(type_, Segment)]


def output_fields(
    kernel: Kernel, mode: str, inputs: Schema, returns: list[str]
) -> tuple[tuple[Field, ...], tuple[OutputRule, ...]]:
    """Return the output fields and the core's rule for each."""
    if mode == "filter":
        return (), ()
    declared = kernel.out_fields
    if declared is None:
        names = [f"f{i}" for i in range(len(returns))] if len(returns) > 1 else ["value"]
        declared = tuple(
            (name, Out(_dtype_noted(what[6:])) if what.startswith("array:") else what[7:])
            for name, what in zip(names, returns, strict=True)
        )
    elif returns and len(declared) != len(returns):
        raise KernelError(
            f"kernel {kernel.name!r} returns {len(returns)} values and out= declares "
            f"{len(declared)}"
        )
    for (name, out), what in zip(declared, returns, strict=False):
        if isinstance(out, Out | Segment) != what.startswith("array:"):
            given = "an array" if what.startswith("array:") else "a number"
            raise KernelError(
                f"kernel {kernel.name!r} returns {given} where out= declares {out} for {name!r}"
            )
    like = next((type_ for type_ in inputs.types if isinstance(type_, Segment)), None)
    fields, rules = [], []
    for name, out in declared:
        if isinstance(out, Segment):
            out = Out(out.dtype, timebase=out.timebase)
        if not isinstance(out, Out):
            fields.append(Field(name, out if isinstance(out, Scalar) else scalar_of(out)))
            rules.append(OutputRule(0))
            continue
        rate = Fraction(out.rate)
        start = out.start or ("scaled" if rate != 1 else "input" if like else "running")
        fields.append(Field(name, Segment(out.dtype, out.timebase or _scaled(like, rate))))
        rules.append(
            OutputRule(
                np.dtype(out.dtype).itemsize, _START_RULES[start], rate.numerator, rate.denominator
            )
        )
    return tuple(fields), tuple(rules)


def _dtype_noted(text: str) -> np.dtype[Any]:
    return np.lib.format.descr_to_dtype(literal_eval(text))


def scaled_width(width: str, rate: Fraction) -> str:
    """An expression for width * rate, rounded down, whose products stay within 64 bits."""
    if rate == 1:
        return width
    num, den = rate.numerator, rate.denominator
    return f"{width} // {den} * {num} + {width} % {den} * {num} // {den}"


def _scaled(like: Segment | None, rate: Fraction) -> Timebase:
    if like is None:
        return Timebase.index()
    return like.timebase.scaled(rate)
