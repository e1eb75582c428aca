"""The source of a region's function; see `_region`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from xstream._native import lib
from xstream.engine.schema import Out, Segment
from xstream.kernels._frame import bound, scaled_width
from xstream.kernels._region_loop import RegionLoops
from xstream.kernels._region_text import (
    COUNT,
    ENDED,
    STATUS,
    VERDICT,
    Value,
    cast,
    fills,
    first_segment,
    first_start,
    frame_words,
)
from xstream.kernels.kernel import Kernel
from xstream.kernels.stage import Stage

__all__ = ["RegionSource"]

_IMPORTS = """\
\"\"\"Written by xstream for one region; made again when it is missing.\"\"\"
from collections import namedtuple
import numpy as np
from numpy import dtype
from xstream.kernels._numba import fill, guarded_call
from xstream.kernels._pieces import pieces_maker, pieces_of
from xstream.kernels._rolling import rolling_maker
from xstream.kernels._weak import as_weak as _weak
from xstream.kernels._links import (
    allocate, block, count, done, keep, noted, put, put_real, readonly, real, refuse, scaled, send,
    tried, window, word,
)
"""


class RegionSource(RegionLoops):
    """Generates the functions of a region: its stages, and what passes between them."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        super().__init__(stages)
        #: By stage: the fields that its kernel emits.
        self.links: dict[int, tuple[tuple[str, str], ...]] = {}
        self.outputs: tuple[tuple[int, int], ...] = ()
        self._write()
        states = {
            f"State_{i} = namedtuple('State', {list(stage.code.kernel.state_names)!r})"
            for i, stage in enumerate(stages)
            if stage.code is not None and stage.code.kernel.state_names
        }
        constants = [f"{name} = {text}" for text, name in self.layout.constants.items()]
        self.text = "\n".join([_IMPORTS, *constants, *sorted(states), "", *self._texts, ""])

    def _write(self) -> None:
        if self.rows:
            with self.function("one", "R, A"):
                self._stage(0, self._inputs())
            with self.function("run", "R"):
                self._rows()
        else:
            with self.function("run", "R"):
                self._stage(0, self._inputs())
        ended = [
            i for i, s in enumerate(self.stages) if s.code is not None and s.code.kernel.at_end
        ]
        for i in ended:
            with self.function(f"finish_{i}", "R"):
                self._kernel(i, self._nothing(i), ended=True)
        lines = ["def region(R):", f"    ended = word(R, {ENDED})", "    if ended == 0:",
                 "        guarded_call(R, run, (R,))"]  # fmt: skip
        for i in ended:
            lines += [f"    elif ended == {i + 1}:", f"        guarded_call(R, finish_{i}, (R,))"]
        self._texts += lines

    def _rows(self) -> None:
        """The loop over tuples without segments, which lie one after another."""
        self.put(f"A = word(R, {int(lib.XS_REGION_ROWS)})")
        with self.block(f"for j in range(word(R, {COUNT})):"):
            with self.block("if not one(R, A):"):
                self.put("return False")
            self.put(f"A += {8 * len(self.stages[0].inputs)}")
        self.put("return True")

    def _inputs(self) -> list[Value]:
        """The region's input; arrays are made of the fields that some stage reads."""
        values, at = [], 0 if self.rows else int(lib.XS_REGION_INPUTS)
        frame = "A" if self.rows else "R"
        for number, field in enumerate(self.stages[0].inputs):
            if isinstance(field.type, Segment):
                start = f"word(R, {at + 2})"
                values.append(Value(field.type, f"input_{number}", start, number))
                at += 3
                continue
            name = f"number_{number}"
            word = self.layout.scalar(at, field.type.kind).expression
            self.put(f"{name} = {frame_words(word, frame)}")
            values.append(Value(field.type, name, origin=number))
            at += 1
        return values

    def _nothing(self, i: int) -> list[Value]:
        """Empty inputs, for the call after the last tuple."""
        values = []
        for number, field in enumerate(self.stages[i].inputs):
            name = f"nothing_{number}"
            if isinstance(field.type, Segment):
                self.put(f"{name} = readonly(block(R, 0, {self._dtype(field.type)}))")
            else:
                self.put(f"{name} = {cast(field.type.kind, '0')}")
            values.append(Value(field.type, name))
        return values

    # -- stages ----------------------------------------------------------------------------------

    def _stage(self, i: int, values: list[Value]) -> None:
        """Process a tuple from stage `i` on; earlier stages are already counted."""
        if i == len(self.stages):
            self._leave(values)
            return
        self._count(i, values)
        stage = self.stages[i]
        if stage.kind == "pass":
            self._stage(i + 1, values)
        elif stage.kind == "select":
            self._stage(i + 1, [values[number] for number in stage.chosen])
        elif stage.kind == "count":
            self.put("return True")
        elif stage.looped is not None and self._foldable(i, values):
            self._statistic(i, values)
        elif stage.looped is not None:
            self._next(*self._loop(i, values))
        else:
            self._kernel(i, values)

    def _count(self, i: int, values: list[Value]) -> None:
        """The core counts for the first stage."""
        if i == 0:
            return
        first = first_segment(values)
        self.put(f"count(R, {self.tuples_at + i}, 1)")
        width = "1" if first is None else self._width(first)
        self.put(f"count(R, {self.samples_at + i}, {width})")

    def _kernel(self, i: int, values: list[Value], ended: bool = False) -> None:
        """Call a kernel and handle its result."""
        stage, code = self.stages[i], self._code(i)
        first = first_segment(values)
        start = first.start if first is not None else "0"
        self._frame(i)
        if first is not None:
            if ended:  # outputs start where those of the last tuple did
                start = f"word(F{i}, {first_start(stage.inputs)})"
            elif code.kernel.at_end:
                self.put(f"put(F{i}, {first_start(stage.inputs)}, {start})")
        given = self._arguments(i, values)
        if code.mode == "iterate":
            self._link(i)
            given["out"] = f"link_{i}(R, {start})"
        filled = self._filled(i, values, start, given) if fills(code) else None
        passed = "".join(f"{given[name]}, " for name in code.kernel.parameters)
        nothing = code.mode == "iterate" or filled is not None
        self.put(f"t{i} = {'done' if nothing else 'noted'}(F{i}, kernel_{i}, ({passed}))")
        raised = f"t{i}" if nothing else f"t{i}[0]"
        broken = f"{raised} or word(R, {STATUS}) != 0" if code.mode == "iterate" else raised
        with self.block(f"if {broken}:"):
            self._fail(i, values, "RAISED")
        if code.mode == "iterate":
            self.put("return True")
        elif code.mode == "filter":
            if ended:
                self.put("return True")
                return
            with self.block(f"if not t{i}[1]:"):
                self.put("return True")
            self._stage(i + 1, values)
        elif filled is not None:
            self._next(i, filled)
        else:
            self._results(i, values, start, f"t{i}[1]", "0")

    def _statistic(self, first: int, values: list[Value]) -> None:
        """A statistic with the loop in front of it. What fails is found by running both again."""
        i = self._fold(first, values)
        code, start = self._code(i), values[0].start
        self._frame(i)
        type_ = self.stages[i].inputs.types[0]
        given = self._arguments(i, [Value(type_, f"w{first}", start, folded=True)])
        if code.mode == "iterate":
            self._link(i)
            given["out"] = f"link_{i}(R, {start})"
        passed = "".join(f"{given[name]}, " for name in code.kernel.parameters)
        self.put(f"t{i} = tried(F{i}, kernel_{i}, ({passed}))")
        with self.block(f"if t{i}[0] or word(R, {STATUS}) != 0 or len(c{first}) < 0:"):
            self._frame(first)  # the scratch memory is used up to here
            self._fail(first, values, "RERUN")
        if code.mode == "iterate":
            self.put("return True")
        else:
            self._results(i, values, start, f"t{i}[1]", "0")

    def _arguments(self, i: int, values: list[Value]) -> dict[str, str]:
        """What each parameter of the kernel gets."""
        stage, kernel = self.stages[i], self._code(i).kernel
        arguments, states = self._words(i)
        given = {}
        sources = bound(kernel, stage.inputs, len(stage.arguments))
        for name, source in zip(kernel.data_parameters(), sources, strict=True):
            if source >= len(values):
                given[name] = arguments[source - len(values)]
            elif isinstance(values[source].type, Segment):
                given[name] = self._segment(kernel, values[source])
            else:
                given[name] = values[source].name
        if states:
            items = ", ".join(states)
            given["state"] = f"State_{i}({items})" if kernel.state_names else items
        return given

    def _segment(self, kernel: Kernel, value: Value) -> str:
        """A segment as a kernel gets it: computed in parts, walked, or as an array."""
        if value.folded:
            return value.name
        return self._pieces(value) if kernel.pieces else self._array(value)

    # -- results ---------------------------------------------------------------------------------

    def _filled(
        self, i: int, values: list[Value], start: str, given: dict[str, str]
    ) -> list[Value]:
        """Arrays for a kernel that fills its outputs; the values that they become."""
        code = self._code(i)
        assert code.outputs is not None
        declared = dict(code.kernel.out_fields or ())
        filled = []
        for field, (name, type_) in enumerate((f.name, f.type) for f in code.outputs):
            assert isinstance(type_, Segment)
            out = declared[name]
            rate = Fraction(out.rate) if isinstance(out, Out) else Fraction(1)
            fixed = out.width if isinstance(out, Out) else None
            first = first_segment(values)
            have = "0" if first is None else self._width(first)
            self.put(f"n{i}_{field} = {fixed if fixed is not None else scaled_width(have, rate)}")
            begin = self._start(i, field, values, start, f"n{i}_{field}", "0")
            space = self._space(i, field, type_, begin, f"n{i}_{field}", values)
            filled.append(Value(type_, space, begin))
        names = ", ".join(value.name for value in filled)
        given["out"] = names if len(filled) == 1 else f"({names})"
        return filled

    def _next(self, i: int, filled: list[Value]) -> None:
        """Pass on arrays that are filled."""
        if self._is_last(i):
            self._send(filled)
            return
        passed = []
        for field, value in enumerate(filled):
            self.put(f"a{i}_{field} = readonly({value.name})")
            passed.append(replace(value, name=f"a{i}_{field}"))
        self._stage(i + 1, passed)

    def _results(self, i: int, values: list[Value], start: str, result: str, given: str) -> None:
        """Make the next tuple from the values that a kernel returned or emitted, and pass it on."""
        code = self._code(i)
        assert code.outputs is not None
        several = len(code.outputs) > 1 or code.mode == "iterate"
        made = []
        for field, type_ in enumerate(code.outputs.types):
            item = f"{result}[{field}]" if several else result
            if not isinstance(type_, Segment):
                self.put(f"x{i}_{field} = {cast(type_.kind, item)}")
                made.append(Value(type_, f"x{i}_{field}"))
                continue
            self.put(f"v{i}_{field} = {item}")
            width = f"len(v{i}_{field})"
            begin = self._start(i, field, values, start, width, given)
            if self._is_last(i):
                name = self._space(i, field, type_, begin, width, values)
                self.put(f"fill({name}, v{i}_{field})")
            else:
                name = f"a{i}_{field}"
                self.put(f"{name} = window(v{i}_{field}, {self._dtype(type_)})")
            made.append(Value(type_, name, begin))
        if self._is_last(i):
            self._send(made)
        else:
            self._stage(i + 1, made)

    def _link(self, i: int) -> None:
        """The stages after a kernel that emits, as a separate function that is written once."""
        if i in self.links:
            return
        code = self._code(i)
        assert code.outputs is not None
        self.links[i] = tuple(
            ("segment", str(type_.dtype)) if isinstance(type_, Segment) else ("scalar", type_.kind)
            for type_ in code.outputs.types
        )
        with self.function(f"after_{i}", "R, start, given, values"):
            with self.block(f"if word(R, {STATUS}) != 0:"):
                self.put("return False")
            self._frame(i)
            self._results(i, [], "start", "values", "given")

    def _leave(self, values: list[Value]) -> None:
        """Emit a tuple of the region if the last stage is a filter, a pass or a selection."""
        whole = [value.origin for value in values] == list(range(len(self.stages[0].inputs)))
        if whole:
            self._send_outputs(values)
            if not self.rows:
                self.put(f"put(R, {VERDICT}, 1)", "return True")
                return
            with self.block(f"if word(R, {COUNT}) == 1:"):
                self.put(f"put(R, {VERDICT}, 1)", "return True")
        for field, value in enumerate(values):
            if isinstance(value.type, Segment) and value.origin < 0:
                width = f"len({value.name})"
                self.put(f"p{field} = allocate(R, {field}, {width}, {value.start})")
                with self.block(f"if p{field} == 0 and word(R, {STATUS}) != 0:"):
                    self.put("return False")
                self.put(f"fill(block(p{field}, {width}, {self._dtype(value.type)}), {value.name})")
        self._send(values)

    def _send(self, values: list[Value]) -> None:
        """Write numbers to the frame's words, then send the tuple."""
        for field, value in enumerate(values):
            if not isinstance(value.type, Segment):
                real = value.type.slot == "float64"
                what = f"np.float64({value.name})" if real else f"np.int64({value.name})"
                self.put(f"put{'_real' if real else ''}(R, {self.outputs_at + field}, {what})")
        self._send_outputs(values)
        self.put("return send(R) == 0")

    def _send_outputs(self, values: list[Value]) -> None:
        self.outputs = tuple(
            (value.type.dtype.itemsize, value.origin)
            if isinstance(value.type, Segment)
            else (0, -1)
            for value in values
        )
