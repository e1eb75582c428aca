"""Compiles kernels to function pointers that take the core's frame.

The core fills a frame (`_frame`) and calls an adapter; the adapter makes arrays of the words, calls
the kernel, and writes the results back.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from xstream._native import lib
from xstream.engine.schema import Field, FieldType, Out, Schema, Segment
from xstream.errors import KernelError
from xstream.kernels import _cache
from xstream.kernels._arguments import ArgumentType
from xstream.kernels._expression import is_expression
from xstream.kernels._fingerprint import fingerprint
from xstream.kernels._frame import (
    Layout,
    OutputRule,
    Word,
    bound,
    output_fields,
    scaled_width,
    segment_facts,
    used_fields,
)
from xstream.kernels.kernel import Kernel

__all__ = ["CompiledKernel", "compile_kernel"]

#: The beginning of xstream's message in numba errors about an emit that does not fit.
EMITTED_WRONG = "out= declares"


@dataclass(frozen=True, slots=True)
class MachineCode:
    """The adapter of a kernel, compiled or loaded from the cache."""

    address: int
    from_cache: bool
    keep_alive: Any


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """A kernel whose types are known, with the layout of its frame.

    Its machine code is generated when an operator runs it; a region does not need it.
    """

    kernel: Kernel
    mode: str
    words: int
    arguments_at: int
    states_at: int
    outputs_at: int
    outputs: Schema | None  # None: a filter
    rules: tuple[OutputRule, ...]
    used: int  # fields that the kernel reads, by bit
    in_place: int  # the field whose samples the output may overwrite; -1: none
    by_sample: bool  # an expression over samples, run as a loop over them
    jitted: Any  # the kernel's function for numba
    compile: Callable[[], MachineCode] = dataclasses.field(repr=False)

    @cached_property
    def machine(self) -> MachineCode:
        """The machine code; a KernelError if numba cannot generate it."""
        return self.compile()

    @property
    def address(self) -> int:
        """The address of the machine code."""
        return self.machine.address

    @property
    def from_cache(self) -> bool:
        """Whether the machine code was found on disk."""
        return self.machine.from_cache


def compile_kernel(
    kernel: Kernel,
    mode: str,
    inputs: Schema,
    arguments: tuple[ArgumentType, ...],
    debug: bool = False,
) -> CompiledKernel:
    """Check and type `kernel` for tuples of `inputs`: `mode` is map, filter or iterate.

    Raises a KernelError if the kernel does not compile. The adapter is compiled when it is needed.
    With `debug`, the code checks every index and every division.
    """
    _check_compiler(debug)
    sources = bound(kernel, inputs, len(arguments))
    layout = Layout()
    values = [layout.field(field.type) for field in inputs]
    arguments_at = layout.next
    values += [layout.argument(type_) for type_ in arguments]
    words = [values[source] for source in sources]
    states_at = layout.next
    states = [layout.state(state) for state in kernel.states]
    outputs_at = layout.next
    key = fingerprint(
        kernel.function, mode, [str(word.numba_type) for word in words],
        [str(word.numba_type) for word in states], kernel.state_names, repr(kernel.out_fields),
        segment_facts(inputs), [word.expression for word in words], debug,
    )  # fmt: skip
    call = _Call(kernel, mode, inputs, layout, words, states, outputs_at, debug)
    facts = _cache.read_facts(key)
    with compiling(debug):
        returns = call.return_types() if facts is None else facts["returns"]
        fields, rules = output_fields(kernel, mode, inputs, returns)
        total = outputs_at + max(len(rules), 1)
        source = call.source(fields, total)
        if facts is None:
            call.check_out(fields, total)
            _cache.write_facts(key, {"returns": returns}, code=False)
    looped = call.loops_over(fields)
    over = _overwritten(kernel, looped, sources, inputs, fields)
    return CompiledKernel(
        kernel, mode, total, arguments_at, states_at, outputs_at,
        Schema(fields) if fields else None, rules, used_fields(sources, inputs), over,
        looped is not None, call.jitted, lambda: call.compile(key, source, returns),
    )  # fmt: skip


def _overwritten(
    kernel: Kernel, looped: str | None, sources: list[int], inputs: Schema,
    fields: tuple[Field, ...],
) -> int:  # fmt: skip
    """The field whose samples the only output may overwrite, one by one; -1 if there is none."""
    parameter = looped or kernel.in_place
    if parameter is None or len(fields) != 1 or not isinstance(fields[0].type, Segment):
        return -1
    number = sources[kernel.data_parameters().index(parameter)]
    given = inputs.types[number] if number < len(inputs) else None
    same = isinstance(given, Segment) and given.dtype == fields[0].type.dtype
    return number if same else -1


def _check_compiler(debug: bool) -> None:
    """Raise a KernelError if numba's settings contradict the requested options."""
    import numba

    if numba.config.DISABLE_JIT:
        raise KernelError("kernels need numba's compiler, and NUMBA_DISABLE_JIT turns it off")
    if debug and numba.config.BOUNDSCHECK == 0:
        raise KernelError("debug mode checks indices, and NUMBA_BOUNDSCHECK=0 turns that off")


@contextmanager
def compiling(debug: bool) -> Iterator[None]:
    """Set up numba for compiling kernels within this context."""
    from xstream.kernels._inner import quick_typing

    with ExitStack() as stack:
        stack.enter_context(quick_typing())
        if debug:
            from xstream.kernels._debug import checks

            stack.enter_context(checks())
        yield


def _jitted(kernel: Kernel, debug: bool) -> Any:
    """The kernel's function for numba; in debug mode a division by zero raises."""
    from xstream.kernels._inner import inner_jit

    if not debug:
        return inner_jit(kernel.function)
    from xstream.kernels._debug import own_twin

    return own_twin(inner_jit(kernel.function, error_model="python"))


def compile_error(kernel: Kernel, inputs: Schema, error: Exception) -> KernelError:
    """Return numba's error about a kernel as one sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = next((line for line in lines if EMITTED_WRONG in line), None)
    if ours is not None:
        return KernelError(f"kernel {kernel.name!r}: {ours[ours.index(EMITTED_WRONG) :]}")
    telling = [line for line in lines if not line.startswith(("Failed in", "-", "File"))]
    return KernelError(
        f"kernel {kernel.name!r} does not compile for {inputs}: " + " ".join(telling[:2])
    )


def state_type(kernel: Kernel, items: list[Any]) -> Any:
    """The numba type of `state`: an array, or a named tuple of arrays."""
    from numba import types

    names = kernel.state_names
    if names is None:
        return items[0]
    return types.BaseTuple.from_types(items, namedtuple("State", names))


class _Call:
    """One adapter: its source, and its compilation."""

    def __init__(
        self, kernel: Kernel, mode: str, inputs: Schema, layout: Layout, words: list[Word],
        states: list[Word], outputs_at: int, debug: bool = False,
    ) -> None:  # fmt: skip

        # Numba must know xs.grow and the others before it types a kernel that names them.
        from xstream.kernels import _numba  # noqa: F401

        self.kernel, self.mode, self.inputs, self.layout = kernel, mode, inputs, layout
        self.words, self.states, self.outputs_at = words, states, outputs_at
        self.debug = debug
        self.jitted = _jitted(kernel, debug)

    @property
    def fills(self) -> bool:
        """Whether the kernel fills arrays instead of returning them."""
        return self.mode == "map" and "out" in self.kernel.parameters

    @cached_property
    def expression_of(self) -> str | None:
        """The parameter with the samples if the kernel is an expression over samples."""
        from numba import types

        named = zip(self.kernel.data_parameters(), self.words, strict=True)
        arrays = [name for name, word in named if isinstance(word.numba_type, types.Array)]
        plain = self.mode == "map" and not (self.debug or self.states or self.kernel.out)
        if not plain or len(arrays) != 1 or not self.inputs.segment_bits:
            return None
        return arrays[0] if is_expression(self.kernel.function) else None

    def loops_over(self, fields: tuple[Field, ...]) -> str | None:
        """The parameter whose samples the adapter passes to the kernel one by one, if any."""
        one = len(fields) == 1 and isinstance(fields[0].type, Segment)
        return self.expression_of if one else None

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

    def _signature(self, out: Any = None) -> tuple[Any, ...]:
        """The numba types of the kernel's parameters."""
        arguments = {
            name: word.numba_type
            for name, word in zip(self.kernel.data_parameters(), self.words, strict=True)
        }
        if self.states:
            arguments["state"] = state_type(self.kernel, [word.numba_type for word in self.states])
        arguments["out"] = out
        return tuple(arguments[name] for name in self.kernel.parameters)

    def _infer(self) -> Any:
        """The numba type that the kernel returns.

        It is compiled for that where its code will be called as it is, by its adapter or a region.
        """
        from numba.core import errors

        from xstream.kernels._inference import inferred

        signature = self._signature()
        try:
            if self.expression_of:
                return inferred(self.jitted, signature)
            self.jitted.compile(signature)
        except errors.NumbaError as error:
            raise self._error(error) from error
        return self.jitted.overloads[signature].signature.return_type

    def check_out(self, fields: tuple[Field, ...], total: int) -> None:
        """Raise a KernelError if a kernel that fills arrays or emits does not compile."""
        from numba import types
        from numba.core import errors
        from numba.np.numpy_support import from_dtype

        from xstream.kernels._inference import DeclaredOut, inferred

        if self.mode != "iterate" and not self.fills:
            return
        try:
            if self.fills:
                arrays = [
                    types.Array(from_dtype(field.type.dtype), 1, "C")
                    for field in fields
                    if isinstance(field.type, Segment)
                ]
                out = arrays[0] if len(arrays) == 1 else types.BaseTuple.from_types(arrays)
                inferred(self.jitted, self._signature(out))
                return
            described = tuple(self._emitted(field.type) for field in fields)
            try:
                inferred(self.jitted, self._signature(DeclaredOut(described)))
            except errors.NumbaError:
                emitter = self._emitter_type(fields, total)
                inferred(self.jitted, self._signature(emitter))
        except errors.NumbaError as error:
            raise self._error(error) from error

    def _emitter_type(self, fields: tuple[Field, ...], total: int) -> Any:
        """The type of `out` in a kernel that emits."""
        from xstream.kernels._numba import EmitterType

        return EmitterType(*self._emitter(fields, total))

    def _emitter(self, fields: tuple[Field, ...], total: int) -> tuple[Any, int, int, int]:
        described = tuple(self._emitted(field.type) for field in fields)
        return described, self.outputs_at, total, self._first_segment_word() + 2

    def _error(self, error: Exception) -> KernelError:
        return compile_error(self.kernel, self.inputs, error)

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
        looped = self.loops_over(fields)
        if self.mode == "iterate":
            expressions["out"] = "_emitter(frame)"
        elif self.fills:
            before, expressions["out"] = self._allocations(fields)
        elif looped:
            before, _ = self._allocations(fields)
        passed_on = "".join(f"{expressions[name]}, " for name in self.kernel.parameters)
        if looped:
            rest = "".join(f"{text}, " for name, text in expressions.items() if name != looped)
            body += [
                f"if p0 == {passed[looped].address}:",
                f"    _call(frame, loop_in_place, (o0, {rest}))",
                "else:",
                f"    _call(frame, loop, ({expressions[looped]}, o0, {rest}))",
            ]
        else:
            body.append(f"r = _call(frame, kernel, ({passed_on}))")
        if self.mode == "filter":
            body.append("w[4] = 1 if r else 0")
        elif self.mode == "map" and not self.fills and not looped:
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
            "from xstream.kernels._numba import guarded_call as _call, keep_array as _keep",
            "from xstream.kernels._weak import as_weak as _weak",
            "from xstream.kernels._rolling import rolling_maker",
            *(f"{name} = {text}" for text, name in self.layout.constants.items()),
        ]
        if self.kernel.state_names:
            lines.append(f"State = namedtuple('State', {list(self.kernel.state_names)!r})")
        if self.mode == "iterate":
            lines.append(f"_emitter = emitter_maker(*{self._emitter(fields, total)!r})")
        if looped:
            lines += self._loops(looped)
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

    def _loops(self, looped: str) -> list[str]:
        """Loops that give the kernel one sample after the other. The second is for one array alone:
        two that overlap would not be vectorised."""
        rest = "".join(f", {name}" for name in self.kernel.parameters if name != looped)
        lines = ["from numba import njit"]
        for name, samples in (("loop", "_x"), ("loop_in_place", "_out")):
            given = ", ".join(
                f"{samples}[_i]" if parameter == looped else parameter
                for parameter in self.kernel.parameters
            )
            arrays = "_x, _out" if samples == "_x" else "_out"
            lines += [
                "",
                "",
                "@njit(error_model='numpy')",
                f"def {name}({arrays}{rest}):",
                "    for _i in range(len(_out)):",
                f"        _out[_i] = kernel({given})",
            ]
        return lines

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
        declared = dict(self.kernel.out_fields or ((field.name, None) for field in fields))
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
                else scaled_width(f"w[{width_word}]", rate)
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
                dtype = self.layout.dtype_name(field.type.dtype)
                item = -1 if len(fields) == 1 else i
                lines += [
                    f"p{i} = _keep(frame, {i}, None, {dtype}, r, {item})",
                    f"if p{i} != 0:",
                    f"    _fill(carray(_at(p{i}), (len({value}),), {dtype}), {value})",
                ]
            else:
                words = "f" if field.type.slot == "float64" else "w"
                if field.type.narrow:
                    value = f"np.{field.type.kind}({value})"
                lines.append(f"{words}[{at}] = {value}")
        return lines

    def compile(self, key: str, source: str, returns: list[str]) -> MachineCode:
        """Compile the adapter, or load it from the cache."""
        from numba.core import errors

        with compiling(self.debug):
            _cache.check_code(key)
            try:
                code = self._compile_adapter(key, source)
            except errors.NumbaError as error:
                raise self._error(error) from error
            if not code.from_cache:
                _cache.write_facts(key, {"returns": returns}, code=True)
        return code

    def _compile_adapter(self, key: str, source: str) -> MachineCode:
        from numba import cfunc, types
        from numba.core import errors

        from xstream.kernels._inner import set_environments

        module, cacheable = _cache.load_module(key, source)
        module.kernel = self.jitted  # type: ignore[attr-defined]
        signature = types.void(types.int64)
        try:
            with warnings.catch_warnings():  # cannot be cached, which is not an error
                warnings.filterwarnings("ignore", "Cannot cache", errors.NumbaWarning)
                compiled = cfunc(signature, cache=cacheable, error_model="numpy")(module.adapter)
        except errors.NumbaError:
            raise
        except Exception:
            # Typed at a prompt, or a cache that cannot be read or written: for this process.
            _cache.forget_code(key)
            module = _cache.module_in_memory(key, source)
            module.kernel = self.jitted  # type: ignore[attr-defined]
            compiled = cfunc(signature, error_model="numpy")(module.adapter)
        if not compiled.cache_hits:
            set_environments(compiled)
        return MachineCode(compiled.address, compiled.cache_hits > 0, (compiled, module))
