"""The source of an adapter: what is compiled around one kernel; see `_adapter`."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from xstream._native import lib
from xstream.engine.schema import Field, FieldType, Out, Schema, Segment
from xstream.errors import KernelError
from xstream.kernels._expression import is_expression
from xstream.kernels._frame import Layout, Word, scaled_width
from xstream.kernels.kernel import Kernel

__all__ = ["AdapterSource"]

#: How the source of every adapter begins.
_HEAD = (
    '"""Written by xstream for one kernel; made again when it is missing."""',
    "from collections import namedtuple",
    "import numpy as np",
    "from numpy import dtype",
    "from numba import carray",
    "from xstream.kernels._numba import address_as_pointer as _at",
    "from xstream.kernels._numba import as_readonly as _readonly",
    "from xstream.kernels._numba import call_allocate as _allocate, fill as _fill",
    "from xstream.kernels._emitter import emitter_maker",
    "from xstream.kernels._numba import guarded_call as _call, keep_array as _keep",
    "from xstream.kernels._weak import as_weak as _weak",
    "from xstream.kernels._pieces import pieces_maker",
    "from xstream.kernels._rolling import rolling_maker",
)


class AdapterSource:
    """Generates the function that reads a frame, calls the kernel, and keeps its results."""

    def __init__(
        self, kernel: Kernel, mode: str, inputs: Schema, layout: Layout, words: list[Word],
        states: list[Word], outputs_at: int, debug: bool,
    ) -> None:  # fmt: skip
        self.kernel, self.mode, self.inputs, self.layout = kernel, mode, inputs, layout
        self.words, self.states, self.outputs_at = words, states, outputs_at
        self.debug = debug

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
            *_HEAD,
            *(f"{name} = {text}" for text, name in self.layout.constants.items()),
        ]
        if self.kernel.state_names:
            lines.append(f"State = namedtuple('State', {list(self.kernel.state_names)!r})")
        if self.mode == "iterate":
            lines.append(f"_emitter = emitter_maker(*{self.emitter(fields, total)!r})")
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

    def emitter(self, fields: tuple[Field, ...], total: int) -> tuple[Any, int, int, int]:
        """The fields and words from which `emitter_maker` makes the kernel's `out`."""
        described = tuple(self.emitted(field.type) for field in fields)
        return described, self.outputs_at, total, self._first_segment_word() + 2

    def emitted(self, type_: FieldType) -> tuple[str, str]:
        """A field as `EmitterType` describes it."""
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
