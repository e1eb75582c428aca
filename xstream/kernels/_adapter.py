"""Kernels to function pointers: generates the other side of the core's frame and compiles it.

The core fills a frame of 64-bit words (xstream/kernels/kernel.h) and calls an adapter; the adapter
makes arrays of the words, calls the kernel, and puts back what comes out:

    words 0..5    self, allocate, send, raised, verdict, ended
    inputs        a segment takes three (address, width, start), a scalar one; all fields of the
                  tuple are there, and the kernel gets those that its parameters name
    arguments     an array takes two (address, length), a scalar one
    states        address and length each
    outputs       one a field; those of segments are unused, the core keeps them
"""

from __future__ import annotations

import warnings
from ast import literal_eval
from collections import namedtuple
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from xstream._native import lib
from xstream.engine.schema import Field, FieldType, Out, Scalar, Schema, Segment, scalar_of
from xstream.errors import KernelError
from xstream.kernels import _cache
from xstream.kernels._fingerprint import fingerprint
from xstream.kernels.kernel import Kernel
from xstream.sigseg import Timebase

__all__ = ["CompiledKernel", "OutputRule", "compile_kernel"]

#: What the message begins with that xstream gives numba about an emit that does not fit.
EMITTED_WRONG = "out= declares"
_START_RULES = {"input": 0, "scaled": 1, "running": 2, "given": 3}


@dataclass(frozen=True, slots=True)
class OutputRule:
    """An output field as the core needs it: bytes a sample (0: a scalar) and where it starts."""

    itemsize: int
    start_rule: int = 0
    num: int = 1
    den: int = 1


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A function pointer with the layout of its frame."""

    kernel: Kernel
    mode: str
    address: int
    words: int
    arguments_at: int
    states_at: int
    outputs_at: int
    outputs: Schema | None  # None: a filter
    rules: tuple[OutputRule, ...]
    used: int  # fields that the kernel reads, by bit
    from_cache: bool
    keep_alive: Any


@dataclass(slots=True)
class _Word:
    """Where a value lies in the frame, and the expression that reads it there."""

    expression: str
    numba_type: Any


class _Layout:
    """Hands out the words of a frame and writes the expressions that read them."""

    def __init__(self) -> None:
        self.next = int(lib.XS_FRAME_INPUTS)
        self.constants: dict[str, str] = {}

    def dtype_name(self, dtype: np.dtype[Any]) -> str:
        if dtype.names is None:
            return f"np.{dtype.name}" if dtype.kind != "b" else "np.bool_"
        text = repr(dtype)
        return self.constants.setdefault(text, f"D{len(self.constants)}")

    def take(self, words: int) -> int:
        at = self.next
        self.next += words
        return at

    def array(self, at: int, dtype: np.dtype[Any], readonly: bool) -> _Word:
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
        return _Word(f"_readonly({array})" if readonly else array, numba_type)

    def scalar(self, at: int, kind: str) -> _Word:
        from numba import types

        if kind == "float64":
            return _Word(f"f[{at}]", types.float64)
        if kind == "bool":
            return _Word(f"(w[{at}] != 0)", types.boolean)
        if kind == "int64":
            return _Word(f"w[{at}]", types.int64)
        words = "f" if Scalar(kind).slot == "float64" else "w"
        return _Word(f"np.{kind}({words}[{at}])", getattr(types, kind))

    def field(self, type_: FieldType) -> _Word:
        if isinstance(type_, Segment):
            return self.array(self.take(3), type_.dtype, readonly=True)
        return self.scalar(self.take(1), type_.kind)

    def argument(self, type_: ArgumentType) -> _Word:
        if isinstance(type_, np.dtype):
            return self.array(self.take(2), type_, readonly=True)
        return self.scalar(self.take(1), type_)


#: What code depends on of an argument: a scalar's kind, or an array's dtype.
ArgumentType = str | np.dtype[Any]


def normal_arguments(kernel: Kernel, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments as plain numbers and as own, contiguous arrays of one dimension."""
    normal: list[Any] = []
    for value in arguments:
        try:
            array = np.asarray(value)
        except ValueError:  # rows of different lengths
            array = np.empty((0, 0))
        kind = array.dtype.kind
        whole = kind in "biu" and array.ndim == 0 and -(2**63) <= array.item() < 2**63
        if whole or (kind == "f" and array.ndim == 0):
            normal.append(array.item())
        elif array.ndim == 1 and (kind in "biufc" or _is_record(array.dtype)):
            normal.append(np.array(array, order="C"))
        else:
            raise KernelError(
                f"kernel {kernel.name!r}: an argument is a real number of 64 bits or an array of "
                f"numbers in one dimension, not {value!r}"
            )
    return tuple(normal)


def _is_record(dtype: np.dtype[Any]) -> bool:
    return dtype.names is not None and not dtype.hasobject


def argument_types(arguments: tuple[Any, ...]) -> tuple[ArgumentType, ...]:
    """What a kernel is compiled for, of arguments that are normal."""
    return tuple(
        value.dtype if isinstance(value, np.ndarray) else scalar_of(type(value)).kind
        for value in arguments
    )


def compile_kernel(
    kernel: Kernel,
    mode: str,
    inputs: Schema,
    arguments: tuple[ArgumentType, ...],
    debug: bool = False,
) -> CompiledKernel:
    """Compile `kernel` for tuples of `inputs`: `mode` is map, filter or iterate.

    With `debug`, the code checks every index and every division.
    """
    _check_compiler(debug)
    sources = _bound(kernel, inputs, len(arguments))
    layout = _Layout()
    values = [layout.field(field.type) for field in inputs]
    arguments_at = layout.next
    values += [layout.argument(type_) for type_ in arguments]
    words = [values[source] for source in sources]
    states_at = layout.next
    states = [layout.array(layout.take(2), state.dtype, readonly=False) for state in kernel.states]
    outputs_at = layout.next
    key = fingerprint(
        kernel.function, mode, [str(word.numba_type) for word in words],
        [str(word.numba_type) for word in states], kernel.state_names, repr(kernel.out_fields),
        _segment_facts(inputs), [word.expression for word in words], debug,
    )  # fmt: skip
    with _compiling(debug):
        facts = _cache.read_facts(key)
        call = _Call(kernel, mode, inputs, layout, words, states, outputs_at, debug)
        if facts is None:
            facts = {"returns": call.return_types()}
        fields, rules = _outputs(kernel, mode, inputs, facts["returns"])
        total = outputs_at + max(len(rules), 1)
        source = call.source(fields, total)
        address, from_cache, keep_alive = call.compile(key, source)
        _cache.write_facts(key, facts) if not from_cache else None
    return CompiledKernel(
        kernel, mode, address, total, arguments_at, states_at, outputs_at,
        Schema(fields) if fields else None, rules,
        _used(sources, inputs), from_cache, keep_alive,
    )  # fmt: skip


def _check_compiler(debug: bool) -> None:
    """A KernelError where numba's settings contradict what it is asked for."""
    import numba

    if numba.config.DISABLE_JIT:
        raise KernelError("kernels need numba's compiler, and NUMBA_DISABLE_JIT turns it off")
    if debug and numba.config.BOUNDSCHECK == 0:
        raise KernelError("debug mode checks indices, and NUMBA_BOUNDSCHECK=0 turns that off")


def _compiling(debug: bool) -> AbstractContextManager[None]:
    """How numba is to compile."""
    if not debug:
        return nullcontext()
    from xstream.kernels._debug import checks

    return checks()


def _bound(kernel: Kernel, inputs: Schema, arguments: int) -> list[int]:
    """What each data parameter takes: the number of a field, or of an argument behind the fields.

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


def _used(sources: list[int], inputs: Schema) -> int:
    """The fields that a kernel needs, by bit: widths and starts follow from the first segment."""
    first = inputs.segment_bits & -inputs.segment_bits
    return first | sum(1 << source for source in sources if source < len(inputs))


def _segment_facts(inputs: Schema) -> list[str]:
    return [str(type_.dtype) for type_ in inputs.types if isinstance(type_, Segment)]


def _outputs(
    kernel: Kernel, mode: str, inputs: Schema, returns: list[str]
) -> tuple[tuple[Field, ...], tuple[OutputRule, ...]]:
    """The output fields and what the core must know of each."""
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


def _scaled_width(width: str, rate: Fraction) -> str:
    """An expression for width * rate, rounded down, whose products stay within 64 bits."""
    if rate == 1:
        return width
    num, den = rate.numerator, rate.denominator
    return f"{width} // {den} * {num} + {width} % {den} * {num} // {den}"


def _scaled(like: Segment | None, rate: Fraction) -> Timebase:
    if like is None or like.timebase.rate_hz is None:
        return Timebase.index()
    if rate == 1:
        return like.timebase
    return Timebase(float(like.timebase.rate_hz * rate), like.timebase.start_time)


def _jitted(kernel: Kernel, debug: bool) -> Any:
    """The kernel's function for numba; in debug mode a division by zero raises."""
    from numba import njit

    if not debug:
        return njit(kernel.function, error_model="numpy")
    from xstream.kernels._debug import own_twin

    return own_twin(njit(kernel.function, error_model="python"))


class _Call:
    """One adapter: its source, and its compilation."""

    def __init__(
        self, kernel: Kernel, mode: str, inputs: Schema, layout: _Layout, words: list[_Word],
        states: list[_Word], outputs_at: int, debug: bool = False,
    ) -> None:  # fmt: skip

        # Numba must know xs.grow and the others before it types a kernel that names them.
        from xstream.kernels import _numba  # noqa: F401

        self.kernel, self.mode, self.inputs, self.layout = kernel, mode, inputs, layout
        self.words, self.states, self.outputs_at = words, states, outputs_at
        self.compiled = _jitted(kernel, debug)

    @property
    def fills(self) -> bool:
        """Whether the kernel fills arrays instead of returning them."""
        return self.mode == "map" and "out" in self.kernel.parameters

    def return_types(self) -> list[str]:
        """What the kernel returns, as numba sees it: `array:dtype` or `scalar:kind` each."""
        kernel = self.kernel
        if self.mode == "iterate" or self.fills:
            if kernel.out_fields is None:
                raise KernelError(f"kernel {kernel.name!r} needs out= to say what it emits")
            return []
        if "out" in kernel.parameters:
            raise KernelError(f"kernel {kernel.name!r}: a filter returns a flag and has no 'out'")
        returned = self._infer()
        described = [self._describe(item) for item in getattr(returned, "types", [returned])]
        if not described:
            raise KernelError(f"kernel {kernel.name!r} returns an empty tuple")
        if self.mode == "filter" and described not in (["scalar:bool"], ["scalar:int64"]):
            raise KernelError(
                f"kernel {kernel.name!r} filters, so it returns a flag, not {returned}"
            )
        return described

    def _infer(self) -> Any:
        from numba import types
        from numba.core import errors

        arguments = {
            name: word.numba_type
            for name, word in zip(self.kernel.data_parameters(), self.words, strict=True)
        }
        if self.states:
            items = [word.numba_type for word in self.states]
            names = self.kernel.state_names
            arguments["state"] = (
                items[0] if names is None
                else types.BaseTuple.from_types(items, namedtuple("State", names))
            )  # fmt: skip
        signature = tuple(arguments[name] for name in self.kernel.parameters)
        try:
            self.compiled.compile(signature)
        except errors.NumbaError as error:
            raise self._error(error) from error
        return self.compiled.overloads[signature].signature.return_type

    def _error(self, error: Exception) -> KernelError:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        ours = next((line for line in lines if EMITTED_WRONG in line), None)
        if ours is not None:
            return KernelError(f"kernel {self.kernel.name!r}: {ours[ours.index(EMITTED_WRONG) :]}")
        telling = [line for line in lines if not line.startswith(("Failed in", "-", "File"))]
        return KernelError(
            f"kernel {self.kernel.name!r} does not compile for {self.inputs}: "
            + " ".join(telling[:2])
        )

    def _describe(self, type_: Any) -> str:
        from numba import types
        from numba.np.numpy_support import as_dtype

        if isinstance(type_, types.Boolean):
            return "scalar:bool"
        if isinstance(type_, types.Integer):
            return "scalar:int64"
        if isinstance(type_, types.Float):
            return "scalar:float64"
        if isinstance(type_, types.Array) and type_.ndim == 1:
            return f"array:{np.lib.format.dtype_to_descr(as_dtype(type_.dtype))!r}"
        raise KernelError(
            f"kernel {self.kernel.name!r} returns {type_}: a number, an array in one dimension, "
            "or a tuple of those is what a tuple can carry"
        )

    def source(self, fields: tuple[Field, ...], total: int) -> str:
        """The adapter as Python source, for numba to compile and cache by file."""
        body: list[str] = []
        before: list[str] = []
        passed = dict(zip(self.kernel.data_parameters(), self.words, strict=True))
        expressions = {name: word.expression for name, word in passed.items()}
        if self.states:
            items = ", ".join(word.expression for word in self.states)
            expressions["state"] = f"State({items})" if self.kernel.state_names else items
        if self.mode == "iterate":
            expressions["out"] = "_emitter(frame)"
        elif self.fills:
            before, expressions["out"] = self._allocations(fields)
        passed_on = "".join(f"{expressions[name]}, " for name in self.kernel.parameters)
        body.append(f"r = _call(frame, kernel, ({passed_on}))")
        if self.mode == "filter":
            body.append("w[4] = 1 if r else 0")
        elif self.mode == "map" and not self.fills:
            body += ["if w[3] != 0:", "    return", *self._results(fields)]
        lines = [
            '"""Written by xstream for one kernel; made again when it is missing."""',
            "from collections import namedtuple",
            "import numpy as np",
            "from numpy import dtype",
            "from numba import carray",
            "from xstream.kernels._numba import address_as_pointer as _at",
            "from xstream.kernels._numba import as_readonly as _readonly",
            "from xstream.kernels._numba import call_allocate as _allocate, fill as _fill",
            "from xstream.kernels._numba import emitter_maker",
            "from xstream.kernels._numba import guarded_call as _call",
            *(f"{name} = {text}" for text, name in self.layout.constants.items()),
        ]
        if self.kernel.state_names:
            lines.append(f"State = namedtuple('State', {list(self.kernel.state_names)!r})")
        if self.mode == "iterate":
            described = tuple(self._emitted(field.type) for field in fields)
            lines.append(
                f"_emitter = emitter_maker({described!r}, {self.outputs_at}, {total}, "
                f"{self._first_segment_word() + 2})"
            )
        lines += [
            "",
            "",
            "def adapter(frame):",
            f"    w = carray(_at(frame), ({total},), np.int64)",
            f"    f = carray(_at(frame), ({total},), np.float64)",
            *(f"    {line}" for line in [*before, *body]),
            "",
        ]
        return "\n".join(lines)

    def _emitted(self, type_: FieldType) -> tuple[str, str]:
        if isinstance(type_, Segment):
            return ("segment", repr(np.lib.format.dtype_to_descr(type_.dtype)))
        return ("scalar", type_.kind)

    def _first_segment_word(self) -> int:
        """Where the first segment's words are: address, width, start. Scalars before take one."""
        bits = self.inputs.segment_bits
        return int(lib.XS_FRAME_INPUTS) + ((bits & -bits).bit_length() - 1 if bits else 0)

    def _allocations(self, fields: tuple[Field, ...]) -> tuple[list[str], str]:
        """Output arrays for the kernel to fill, as wide as `out=` says."""
        lines: list[str] = []
        declared = dict(self.kernel.out_fields or ())
        width_word = self._first_segment_word() + 1
        first = self.inputs.segment_bits
        for i, field in enumerate(fields):
            out = declared[field.name]
            if not isinstance(field.type, Segment):
                raise KernelError(
                    f"kernel {self.kernel.name!r}: its parameter 'out' is an array to fill, which "
                    f"out= declares as xs.Out({field.type}), not as {field.type}"
                )
            rate = Fraction(out.rate) if isinstance(out, Out) else Fraction(1)
            fixed = out.width if isinstance(out, Out) else None
            if fixed is None and not first:
                raise KernelError(f"kernel {self.kernel.name!r}: out= needs a width")
            width = (
                str(fixed) if fixed is not None
                else _scaled_width(f"w[{width_word}]", rate)
            )  # fmt: skip
            lines += [
                f"n{i} = {width}",
                f"p{i} = _allocate(w[1], frame, {i}, n{i}, 0)",
                f"if p{i} == 0 and n{i} > 0:",
                "    return",
                f"o{i} = carray(_at(p{i}), (n{i},), {self.layout.dtype_name(field.type.dtype)})",
            ]
        names = ", ".join(f"o{i}" for i in range(len(fields)))
        return lines, names if len(fields) == 1 else f"({names})"

    def _results(self, fields: tuple[Field, ...]) -> list[str]:
        lines: list[str] = []
        for i, field in enumerate(fields):
            value = "r" if len(fields) == 1 else f"r[{i}]"
            at = self.outputs_at + i
            if isinstance(field.type, Segment):
                lines += [
                    f"p{i} = _allocate(w[1], frame, {i}, len({value}), 0)",
                    f"if p{i} != 0:",
                    f"    o{i} = carray(_at(p{i}), (len({value}),), "
                    f"{self.layout.dtype_name(field.type.dtype)})",
                    f"    _fill(o{i}, {value})",
                ]
            else:
                words = "f" if field.type.slot == "float64" else "w"
                if field.type.narrow:
                    value = f"np.{field.type.kind}({value})"
                lines.append(f"{words}[{at}] = {value}")
        return lines

    def compile(self, key: str, source: str) -> tuple[int, bool, Any]:
        """The adapter's address, whether it came from disk, and what keeps it alive."""
        from numba import cfunc, types
        from numba.core import errors

        module, cacheable = _cache.load_module(key, source)
        module.kernel = self.compiled  # type: ignore[attr-defined]
        signature = types.void(types.int64)
        try:
            try:
                with warnings.catch_warnings():  # what cannot be cached need not be
                    warnings.filterwarnings("ignore", "Cannot cache", errors.NumbaWarning)
                    compiled = cfunc(signature, cache=cacheable, error_model="numpy")(
                        module.adapter
                    )
            except errors.NumbaError:
                raise
            except Exception:
                # Typed at a prompt, or a cache that cannot be read or written: for this process.
                _cache.forget_code(key)
                module = _cache.module_in_memory(key, source)
                module.kernel = self.compiled  # type: ignore[attr-defined]
                compiled = cfunc(signature, error_model="numpy")(module.adapter)
        except errors.NumbaError as error:
            raise self._error(error) from error
        return compiled.address, compiled.cache_hits > 0, (compiled, module)
