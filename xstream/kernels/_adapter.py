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
from functools import cached_property
from typing import Any

import numpy as np

from xstream.engine.schema import Field, Schema, Segment
from xstream.errors import KernelError
from xstream.kernels import _cache
from xstream.kernels._adapter_source import AdapterSource
from xstream.kernels._arguments import ArgumentType
from xstream.kernels._fingerprint import fingerprint
from xstream.kernels._frame import (
    Layout,
    OutputRule,
    Word,
    bound,
    output_fields,
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
    values = [
        layout.field(field.type, number if kernel.pieces else -1)
        for number, field in enumerate(inputs)
    ]
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
    from xstream.kernels._inner import quick_typing, whole_program
    from xstream.kernels._stored import quick_loading

    with ExitStack() as stack:
        stack.enter_context(quick_loading())
        stack.enter_context(quick_typing())
        stack.enter_context(whole_program())
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


class _Call(AdapterSource):
    """One adapter: the types of its kernel, and its compilation."""

    def __init__(
        self, kernel: Kernel, mode: str, inputs: Schema, layout: Layout, words: list[Word],
        states: list[Word], outputs_at: int, debug: bool = False,
    ) -> None:  # fmt: skip

        # Numba must know xs.grow and the others before it types a kernel that names them.
        from xstream.kernels import _emitter, _numba, _pieces  # noqa: F401

        super().__init__(kernel, mode, inputs, layout, words, states, outputs_at, debug)
        self.jitted = _jitted(kernel, debug)

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
            described = tuple(self.emitted(field.type) for field in fields)
            try:
                inferred(self.jitted, self._signature(DeclaredOut(described)))
            except errors.NumbaError:
                emitter = self._emitter_type(fields, total)
                inferred(self.jitted, self._signature(emitter))
        except errors.NumbaError as error:
            raise self._error(error) from error

    def _emitter_type(self, fields: tuple[Field, ...], total: int) -> Any:
        """The type of `out` in a kernel that emits."""
        from xstream.kernels._emitter import EmitterType

        return EmitterType(*self.emitter(fields, total))

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
