"""`@xs.kernel(each=True)`: a function of one sample, as the loop over a segment's samples.

The loop is a kernel like any other: it is generated as source, with the function as a global, and
goes through the adapter, the fingerprint and the cache as a hand-written one would. LLVM inlines
the function into the loop and vectorises it.

Python numbers are weak, as in numpy 2: among float32 samples the float constants of the function
and its float arguments are float32, so it computes what it would for numpy scalars.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from xstream.engine.schema import Out, Scalar, Schema, Segment, scalar_of
from xstream.errors import KernelError, SchemaError
from xstream.kernels import _cache
from xstream.kernels._adapter import CompiledKernel, compile_error, compiling
from xstream.kernels._arguments import ArgumentType
from xstream.kernels._fingerprint import fingerprint
from xstream.kernels._frame import bound
from xstream.kernels.kernel import Kernel

__all__ = ["EachFunction", "Loop", "expression_by_sample", "looped"]

#: Names in generated source that cannot clash with a user's parameters.
_I, _F, _N, _R = "_xs_i", "_xs_function", "_xs_n", "_xs_result"


@dataclass(frozen=True, slots=True)
class EachFunction:
    """A function of one sample, prepared for samples of certain types."""

    kernel: Kernel
    dispatcher: Any  # of numba
    sources: tuple[int, ...]  # what each data parameter takes; see bound()
    sampled: tuple[bool, ...]  # whether that is a sample of a segment
    narrow: tuple[bool, ...]  # whether that is a Python float that becomes float32
    returns: tuple[np.dtype[Any], ...]
    several: bool  # whether it returns a tuple

    def argument(self, number: int, name: str) -> str:
        """The expression for a parameter that is not a sample."""
        return f"np.float32({name})" if self.narrow[number] else name


@dataclass(frozen=True, slots=True)
class Loop:
    """The kernel that runs instead of an `each` kernel, and its mode."""

    kernel: Kernel
    mode: str
    each: EachFunction


@lru_cache(maxsize=256)
def looped(
    kernel: Kernel, how: str, inputs: Schema, arguments: tuple[ArgumentType, ...], debug: bool
) -> Loop:
    """The loop of an `each` kernel over tuples of `inputs`."""
    if how == "iterate":
        raise KernelError(f"kernel {kernel.name!r}: each=True goes with map and filter")
    each = _each_function(kernel, how, inputs, arguments, debug)
    if not any(each.sampled):
        return Loop(_scalar_kernel(each, how), how, each)
    if how == "map":
        return Loop(_map_kernel(each, inputs), "map", each)
    return Loop(_filter_kernel(each, inputs), "iterate", each)


def expression_by_sample(
    kernel: Kernel, code: CompiledKernel, inputs: Schema, arguments: tuple[ArgumentType, ...]
) -> EachFunction | None:
    """A kernel that is an expression over samples, as a function of one; None for other kernels.

    Its types are those that numba gives to the expression over arrays.
    """
    if not code.by_sample or code.outputs is None:
        return None
    (returned,) = code.outputs.types
    assert isinstance(returned, Segment)
    sources = tuple(bound(kernel, inputs, len(arguments)))
    sampled = tuple(
        source < len(inputs) and isinstance(inputs.types[source], Segment) for source in sources
    )
    return EachFunction(
        kernel, code.jitted, sources, sampled, (False,) * len(sources), (returned.dtype,),
        several=False,
    )  # fmt: skip


# -- the function and its types ----------------------------------------------------------------


def _each_function(
    kernel: Kernel, how: str, inputs: Schema, arguments: tuple[ArgumentType, ...], debug: bool
) -> EachFunction:
    from xstream.kernels._inner import inner_jit

    sources = tuple(bound(kernel, inputs, len(arguments)))
    taken = [(inputs.types + arguments)[source] for source in sources]
    single = _common_dtype(taken) in (np.float32, np.complex64)
    function = _with_weak_floats(kernel.function) if single else kernel.function
    narrow = tuple(
        single and source >= len(inputs) and type_ == "float"
        for source, type_ in zip(sources, taken, strict=True)
    )
    dispatcher = inner_jit(function, "python" if debug else "numpy")
    if debug:
        from xstream.kernels._debug import own_twin

        dispatcher = own_twin(dispatcher)
    signature = _signature(kernel, taken, narrow)
    found = _returned(kernel, function, dispatcher, signature, inputs, debug)
    several = found[0] == "tuple"
    returns = tuple(_kept_dtype(np.dtype(name), _common_dtype(taken)) for name in found[1:])
    if how == "filter" and (several or returns[0] != np.bool_):
        raise KernelError(
            f"kernel {kernel.name!r} filters, so it returns a flag, not {', '.join(found[1:])}"
        )
    if kernel.out is not None:
        returns = _declared(kernel, len(returns))
    sampled = tuple(isinstance(type_, Segment) for type_ in taken)
    return EachFunction(kernel, dispatcher, sources, sampled, narrow, returns, several)


def _declared(kernel: Kernel, returned: int) -> tuple[np.dtype[Any], ...]:
    """Return the types that `out=` declares; a sample has only a type."""
    declared = [out for _, out in kernel.out_fields or ()]
    if len(declared) != returned:
        raise KernelError(
            f"kernel {kernel.name!r} returns {returned} values and out= declares {len(declared)}"
        )
    try:
        return tuple(np.dtype(out.kind if isinstance(out, Scalar) else out) for out in declared)
    except (TypeError, ValueError):
        raise KernelError(
            f"kernel {kernel.name!r}: with each=True, out= is the type of a sample, such as "
            f"np.float32, not {kernel.out!r}"
        ) from None


def _common_dtype(taken: list[Any]) -> np.dtype[Any] | None:
    """The type of the fields together; None where there is none, or where they are records."""
    dtypes = [
        type_.dtype if isinstance(type_, Segment) else np.dtype(type_.kind)
        for type_ in taken
        if isinstance(type_, Segment | Scalar)
    ]
    try:
        return np.result_type(*dtypes) if dtypes else None
    except TypeError:
        return None


def _kept_dtype(returned: np.dtype[Any], common: np.dtype[Any] | None) -> np.dtype[Any]:
    """The type of a result: that of the samples where it is of their kind.

    Numba computes integers in 64 bits, and a whole number in the code makes a float32 a float64.
    """
    if common is None or returned.kind == "b":
        return returned
    if returned.kind in "iu" and common.kind in "iu":
        return common
    if returned.kind == "f" and common == np.float32:
        return common
    if returned.kind == "c" and common in (np.float32, np.complex64):
        return np.dtype(np.complex64)
    return returned


def _with_weak_floats(function: FunctionType) -> FunctionType:
    """The function with its float constants as float32."""

    def narrowed(constant: Any) -> Any:
        if isinstance(constant, float):
            return np.float32(constant)
        if isinstance(constant, CodeType):
            return constant.replace(co_consts=tuple(map(narrowed, constant.co_consts)))
        return constant

    copy = FunctionType(
        narrowed(function.__code__), function.__globals__, function.__name__,
        function.__defaults__, function.__closure__,
    )  # fmt: skip
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    return copy


def _signature(kernel: Kernel, taken: list[Any], narrow: tuple[bool, ...]) -> tuple[Any, ...]:
    """The numba types of the parameters."""
    from numba import types
    from numba.np.numpy_support import from_dtype

    from xstream.kernels._weak import WEAK

    def scalar(type_: Any) -> Any:
        try:
            item = from_dtype(type_)
        except NotImplementedError:
            item = None
        if item is None or type_ == np.float16:
            raise KernelError(f"numba cannot express dtype {type_}: convert it first")
        return item

    found: dict[str, Any] = {}
    for name, type_, single in zip(kernel.data_parameters(), taken, narrow, strict=True):
        if isinstance(type_, np.dtype):
            found[name] = types.Array(scalar(type_), 1, "C", readonly=True)
        elif isinstance(type_, Segment):
            found[name] = scalar(type_.dtype)
        else:
            kind = type_.kind if isinstance(type_, Scalar) else type_
            found[name] = types.float32 if single else WEAK.get(kind) or scalar(np.dtype(kind))
    if kernel.states:
        from xstream.kernels._adapter import state_type

        found["state"] = state_type(
            kernel, [types.Array(scalar(state.dtype), 1, "C") for state in kernel.states]
        )
    return tuple(found[name] for name in kernel.parameters)


def _returned(
    kernel: Kernel, function: FunctionType, dispatcher: Any, signature: tuple[Any, ...],
    inputs: Schema, debug: bool,
) -> list[str]:  # fmt: skip
    """`one` or `tuple`, then the dtypes of what the function returns; noted in the cache."""
    key = fingerprint(function, "each", [str(type_) for type_ in signature], debug)
    facts = _cache.read_facts(key)
    if facts is not None:
        return list(facts["returns"])
    from numba import types
    from numba.core import errors
    from numba.np.numpy_support import as_dtype

    try:
        with compiling(debug):
            dispatcher.compile(signature)
    except errors.NumbaError as error:
        raise compile_error(kernel, inputs, error) from error
    returned = dispatcher.overloads[signature].signature.return_type
    several = isinstance(returned, types.BaseTuple)
    items = list(returned) if several else [returned]
    if not items or not all(isinstance(item, types.Number | types.Boolean) for item in items):
        raise KernelError(
            f"kernel {kernel.name!r} returns {returned}: with each=True it returns a number or a "
            "tuple of numbers for every sample"
        )
    found = ["tuple" if several else "one", *(as_dtype(item).name for item in items)]
    _cache.write_facts(key, {"returns": found}, code=False)
    return found


# -- the loops ---------------------------------------------------------------------------------


def _call(each: EachFunction, overwritten: str | None = None) -> str:
    """The call for sample number `_xs_i`, or for a tuple of scalars.

    The samples of a parameter that is overwritten are found in the output.
    """
    given = {}
    for number, name in enumerate(each.kernel.data_parameters()):
        array = "out" if name == overwritten else name
        given[name] = f"{array}[{_I}]" if each.sampled[number] else name
    given["state"] = "state"
    return f"{_F}({', '.join(given[name] for name in each.kernel.parameters)})"


def _prologue(each: EachFunction) -> list[str]:
    """Arguments as weak numbers, and the number of samples, which all segments have."""
    names = each.kernel.data_parameters()
    lines = [
        f"    {name} = {each.argument(number, name)}"
        for number, name in enumerate(names)
        if each.narrow[number]
    ]
    sampled = [name for number, name in enumerate(names) if each.sampled[number]]
    if sampled:
        lines.append(f"    {_N} = len({sampled[0]})")
    for name in sampled[1:]:
        lines += [
            f"    if len({name}) != {_N}:",
            '        raise ValueError("the segments of the tuple have different widths")',
        ]
    return lines


def _kernel_of(each: EachFunction, lines: list[str], out: Any, parameter: bool) -> Kernel:
    """A kernel from the body of its function."""
    kernel = each.kernel
    parameters = ", ".join([*kernel.parameters, *(["out"] if parameter else [])])
    source = "\n".join([f"def {kernel.name}({parameters}):", *_prologue(each), *lines, ""])
    namespace: dict[str, Any] = {
        "__name__": kernel.function.__module__, "np": np, _F: each.dispatcher
    }  # fmt: skip
    exec(compile(source, f"<each {kernel.name}>", "exec"), namespace)
    state: Any = None
    if kernel.states:
        names = kernel.state_names
        state = dict(zip(names, kernel.states, strict=True)) if names else kernel.states[0]
    return Kernel(namespace[kernel.name], state, out)


def _names(each: EachFunction) -> list[str]:
    declared = each.kernel.out_fields
    if declared is not None:
        return [name for name, _ in declared]
    return [f"f{i}" for i in range(len(each.returns))] if each.several else ["value"]


def _scalar_kernel(each: EachFunction, how: str) -> Kernel:
    """One call for a tuple of scalars."""
    out: Any = None
    if how == "map":
        try:
            kinds = [scalar_of(dtype) for dtype in each.returns]
        except SchemaError as error:
            raise KernelError(f"kernel {each.kernel.name!r}: {error}") from None
        out = dict(zip(_names(each), kinds, strict=True))
    return _kernel_of(each, [f"    return {_call(each)}"], out, parameter=False)


def _overwritten(each: EachFunction, inputs: Schema) -> str | None:
    """The parameter whose samples the results may overwrite, because they have its type."""
    for number, name in enumerate(each.kernel.data_parameters()):
        type_ = inputs.types[each.sources[number]] if each.sampled[number] else None
        if isinstance(type_, Segment) and not each.several and type_.dtype == each.returns[0]:
            return name
    return None


def _map_kernel(each: EachFunction, inputs: Schema) -> Kernel:
    """The loop that fills an array with a result for each sample."""
    lines = [f"    for {_I} in range({_N}):"]
    over = _overwritten(each, inputs)
    if over:  # a loop over one array alone: two that overlap would not be vectorised
        lines = [
            f"    if {over}.ctypes.data == out.ctypes.data:",
            f"        for {_I} in range({_N}):",
            f"            out[{_I}] = {_call(each, over)}",
            "        return",
            *lines,
        ]
    if each.several:
        lines.append(f"        {_R} = {_call(each)}")
        place = "out[{i}]" if len(each.returns) > 1 else "out"
        lines += [
            f"        {place.format(i=i)}[{_I}] = {_R}[{i}]" for i in range(len(each.returns))
        ]
    else:
        lines.append(f"        out[{_I}] = {_call(each)}")
    out = dict(zip(_names(each), map(Out, each.returns), strict=True))
    kernel = _kernel_of(each, lines, out, parameter=True)
    kernel.in_place = over
    return kernel


def _filter_kernel(each: EachFunction, inputs: Schema) -> Kernel:
    """The loop that emits every run of samples for which the function is true."""
    segment = inputs.only_segment
    if segment is None:
        raise KernelError(
            f"kernel {each.kernel.name!r}: a filter with each=True takes scalars or a stream of "
            f"segments, not {inputs}"
        )
    (name, *_) = each.kernel.data_parameters()
    lines = [
        "    _xs_first = -1",
        f"    for {_I} in range({_N}):",
        f"        if {_call(each)}:",
        "            if _xs_first < 0:",
        f"                _xs_first = {_I}",
        "        elif _xs_first >= 0:",
        f"            if not out.emit_at(out.start + _xs_first, {name}[_xs_first:{_I}]):",
        "                return",
        "            _xs_first = -1",
        "    if _xs_first >= 0:",
        f"        out.emit_at(out.start + _xs_first, {name}[_xs_first:])",
    ]
    out = {inputs.fields[0].name: Out(segment.dtype, start="given")}
    return _kernel_of(each, lines, out, parameter=True)
