"""map, filter and iterate: the user's own function, compiled or plain Python, as an operator."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xstream._native import ffi, lib
from xstream.engine._python import PythonOperator
from xstream.engine.native import NativePlan, checked, debug_asked
from xstream.engine.operator import Operator
from xstream.engine.schema import Schema, schema
from xstream.errors import KernelError, SegmentMemoryError
from xstream.kernels._adapter import CompiledKernel, compile_kernel
from xstream.kernels._arguments import (
    ArgumentType,
    argument_types,
    argument_words,
    normal_arguments,
    numpy_arguments,
    write_argument,
)
from xstream.kernels._each import expression_by_sample, looped
from xstream.kernels.kernel import Kernel
from xstream.kernels.rolling import Rolling
from xstream.kernels.stage import Stage

__all__ = ["Apply", "KernelApply", "PythonApply", "Sink", "UserKernel", "apply"]

_MODES = {"map": 0, "filter": 1, "iterate": 2}


@dataclass(frozen=True)
class Apply(Operator):
    """A function applied to every tuple."""

    how: str = "map"
    name: str = ""

    @property
    def label(self) -> str:
        return f"{self.how}({self.name})"


class KernelApply(Operator):
    """A compiled kernel: the user's, or that of an operator of the library."""

    #: map, filter or iterate.
    how: str
    #: Whether Python numbers among the arguments are weak (see `_weak`).
    weak_numbers = False

    def kernel_for(self, inputs: Schema) -> Kernel:
        """The kernel for tuples of this schema; it may depend on their dtype."""
        raise NotImplementedError

    def kernel_arguments(self, inputs: Schema) -> tuple[Any, ...]:
        """The kernel's arguments after the fields; by default the operator's parameters."""
        return tuple(getattr(self, parameter.name) for parameter in fields(self))

    def check(self, inputs: Schema) -> None:
        """Raise a SchemaError for tuples that the kernel does not accept."""

    def compiled(self, inputs: Schema, debug: bool | None = None) -> CompiledKernel:
        """The kernel typed for tuples of this schema: once, and once more for debug mode."""
        kernel = self.kernel_for(inputs)
        types = argument_types(self._arguments(kernel, inputs))
        checked_code = debug_asked() if debug is None else debug
        return _compiled(kernel, self.how, inputs, types, checked_code)

    def _arguments(self, kernel: Kernel, inputs: Schema) -> tuple[Any, ...]:
        normal = normal_arguments(kernel, self.kernel_arguments(inputs))
        return normal if self.weak_numbers else numpy_arguments(normal)

    def stage(self, inputs: Schema) -> Stage:
        kernel = self.kernel_for(inputs)
        types = argument_types(self._arguments(kernel, inputs))
        return _stage(kernel, self.how, inputs, types)

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self.check(inputs[0])
        outputs = self.compiled(inputs[0]).outputs
        return inputs if outputs is None else (outputs,)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return self._create(plan, inputs[0], self.compiled(inputs[0], plan.debug).address)

    def create_member(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return self._create(plan, inputs[0], 0)

    def _create(self, plan: NativePlan, inputs: Schema, address: int) -> Any:
        code = self.compiled(inputs, plan.debug)
        plan.keep(code)
        states = code.kernel.states
        op = checked(
            lib.xs_op_kernel(
                plan.handle, address, _MODES[code.mode], code.words, code.outputs_at,
                code.states_at, len(states),
            )
        )  # fmt: skip
        for i, rule in enumerate(code.rules):
            lib.xs_kernel_output(op, i, rule.itemsize, rule.start_rule, rule.num, rule.den)
        if code.kernel.at_end:
            lib.xs_kernel_at_end(op)
        lib.xs_kernel_uses(op, code.used)
        lib.xs_kernel_walks(op, code.used & inputs.segment_bits if code.kernel.pieces else 0)
        lib.xs_kernel_in_place(op, code.in_place)
        self._fill_arguments(plan, op, code, inputs)
        self._set_states(op, states)
        return op

    def raised(self, op: Any) -> BaseException | None:
        return raised_by(op)

    def _set_states(self, op: Any, states: Iterable[NDArray[Any] | Rolling | RollingImage]) -> None:
        for k, state in enumerate(states):
            if isinstance(state, Rolling):
                state = RollingImage(0, np.empty(0, state.sample))
            if isinstance(state, RollingImage):
                image = _bytes_of(state.samples)
                failed = lib.xs_kernel_rolling(
                    op, k, state.start, len(state.samples), state.samples.itemsize, image
                )
            else:
                failed = lib.xs_kernel_state(op, k, len(state), state.itemsize, _bytes_of(state))
            if failed:
                raise SegmentMemoryError(f"{self.label}: no memory is left for its state")

    def read_state(self, op: Any, inputs: Schema) -> dict[str, NDArray[Any]]:
        """A copy of what the kernel keeps between calls, by name."""
        code = self.compiled(inputs)
        frame, found = lib.xs_kernel_frame(op), {}
        for k, (name, declared) in enumerate(_named_states(code.kernel)):
            if isinstance(declared, Rolling):
                samples = np.empty(lib.xs_rolling_width(op, k), declared.sample)
                if len(samples):
                    lib.xs_rolling_read(op, k, ffi.from_buffer(samples.view(np.uint8)))
                found[name] = samples
                found[_start_of(name)] = np.array([lib.xs_rolling_start(op, k)])
                continue
            address, length = (frame[code.states_at + 2 * k + i] for i in range(2))
            memory = ffi.buffer(ffi.cast("char *", address), length * declared.itemsize)
            found[name] = np.frombuffer(memory, declared.dtype).copy()
        return found

    def write_state(self, op: Any, inputs: Schema, state: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state that the kernel keeps between calls."""
        named = dict(_named_states(self.compiled(inputs).kernel))
        declared = kept_arrays(named)
        if set(state) != set(declared):
            raise KernelError(
                f"{self.label} keeps {', '.join(declared) or 'no state'}, and is given "
                f"{', '.join(state) or 'nothing'}"
            )
        for name, array in state.items():
            if array.dtype != declared[name] or array.ndim != 1:
                raise KernelError(
                    f"{self.label}: state {name!r} is one row of {declared[name]}, not "
                    f"{array.ndim} dimensions of {array.dtype}"
                )
        self._set_states(op, (_restored(name, kept, state) for name, kept in named.items()))

    def _fill_arguments(
        self, plan: NativePlan, op: Any, code: CompiledKernel, inputs: Schema
    ) -> None:
        frame, at = lib.xs_kernel_frame(op), code.arguments_at
        arguments = self._arguments(code.kernel, inputs)
        for value, type_ in zip(arguments, argument_types(arguments), strict=True):
            if isinstance(value, np.ndarray):
                plan.keep(value)
            write_argument(frame, at, value)
            at += argument_words(type_)


@dataclass(frozen=True, slots=True)
class RollingImage:
    """The contents of a rolling segment."""

    start: int
    samples: NDArray[Any]


def _bytes_of(array: NDArray[Any]) -> Any:
    return ffi.from_buffer(np.ascontiguousarray(array).view(np.uint8))


def _start_of(name: str) -> str:
    """The name under which the index of a rolling segment's first sample is read and written."""
    return f"{name}.start"


def kept_arrays(states: Mapping[str, NDArray[Any] | Rolling]) -> dict[str, np.dtype[Any]]:
    """The arrays that states are read as and written from, by name, with their types."""
    arrays: dict[str, np.dtype[Any]] = {}
    for name, state in states.items():
        if isinstance(state, Rolling):
            arrays |= {name: state.sample, _start_of(name): np.dtype(np.int64)}
        else:
            arrays[name] = state.dtype
    return arrays


def _restored(
    name: str, kept: NDArray[Any] | Rolling, state: Mapping[str, NDArray[Any]]
) -> NDArray[Any] | RollingImage:
    if not isinstance(kept, Rolling):
        return state[name]
    return RollingImage(int(state[_start_of(name)][0]), state[name])


def _named_states(kernel: Kernel) -> Iterator[tuple[str, NDArray[Any] | Rolling]]:
    """The arrays that a kernel declares; one without a name is called `state`."""
    return zip(kernel.state_names or ("state",) * len(kernel.states), kernel.states, strict=True)


def raised_by(op: Any) -> BaseException | None:
    """Take the exception that a kernel raised out of its frame, with its reference; or None."""
    frame = lib.xs_kernel_frame(op)
    address = frame[lib.XS_FRAME_RAISED]
    if not address:
        return None
    frame[lib.XS_FRAME_RAISED] = 0
    error: BaseException = ctypes.cast(address, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(error))
    if isinstance(error, IndexError):
        from xstream.kernels._debug import OutOfBoundsError

        return error.described() if isinstance(error, OutOfBoundsError) else error
    return error


@dataclass(frozen=True)
class UserKernel(KernelApply, Apply):
    """A kernel of the user's, with the arguments given where it is used."""

    kind = "kernel"
    weak_numbers = True
    kernel: Kernel = field(kw_only=True)
    arguments: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", normal_arguments(self.kernel, self.arguments))

    def kernel_for(self, inputs: Schema) -> Kernel:
        return self.kernel

    def kernel_arguments(self, inputs: Schema) -> tuple[Any, ...]:
        return self.arguments


@lru_cache(maxsize=256)
def _compiled(
    kernel: Kernel,
    how: str,
    inputs: Schema,
    arguments: tuple[ArgumentType, ...],
    debug: bool,
) -> CompiledKernel:
    if kernel.each:
        loop = looped(kernel, how, inputs, arguments, debug)
        kernel, how = loop.kernel, loop.mode
    return compile_kernel(kernel, how, inputs, arguments, debug)


@lru_cache(maxsize=256)
def _stage(kernel: Kernel, how: str, inputs: Schema, arguments: tuple[ArgumentType, ...]) -> Stage:
    code = _compiled(kernel, how, inputs, arguments, False)
    each = (
        looped(kernel, how, inputs, arguments, False).each
        if kernel.each
        else expression_by_sample(kernel, code, inputs, arguments)
    )
    return Stage("kernel", inputs, code, arguments, each)


@dataclass(frozen=True)
class PythonApply(Apply):
    """A plain Python callable; it gets SigSegs and numbers."""

    kind = "python"
    function: Callable[..., Any] = field(kw_only=True)
    out: Schema | None = None
    finish: Callable[[], Any] | None = None
    #: The user's function, if `function` adds arguments to it.
    given: Callable[..., Any] | None = field(default=None, repr=False)

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (self.out or inputs[0],) if self.how != "sink" else ()

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        body = PythonOperator(
            plan, self.how, self.function, inputs, outputs, self.label, self.finish
        )
        return body.op


@dataclass(frozen=True)
class Sink(PythonApply):
    """A plain Python callable that takes every tuple and emits nothing."""

    kind = "sink"


def apply(
    how: str, function: Kernel | Callable[..., Any], arguments: tuple[Any, ...], out: Any
) -> Operator:
    """The operator for a kernel or a callable."""
    if isinstance(function, Kernel):
        if out is not None:
            raise KernelError(f"kernel {function.name!r}: declare out= with @xs.kernel(out=...)")
        return UserKernel(how, function.name, kernel=function, arguments=arguments)
    if not callable(function):
        raise KernelError(f"{how} takes a kernel or a callable, not {function!r}")
    bound = (lambda *values: function(*values, *arguments)) if arguments else function
    name = getattr(function, "__name__", type(function).__name__)
    declared = None if out is None else schema(out)
    return PythonApply(how, name, function=bound, out=declared, given=function)
