"""The source of a region's function; see `_region`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

from xstream._native import lib
from xstream.engine.schema import MAX_FIELDS, FieldType, Out, Schema, Segment
from xstream.kernels._adapter import CompiledKernel
from xstream.kernels._each import EachFunction
from xstream.kernels._frame import Layout, bound, scaled_width
from xstream.kernels.stage import Stage

__all__ = ["RegionSource"]

STATUS, STAGE, ENDED = (
    int(lib.XS_REGION_STATUS), int(lib.XS_REGION_STAGE), int(lib.XS_REGION_ENDED)
)  # fmt: skip
VERDICT, COUNT = int(lib.XS_FRAME_VERDICT), int(lib.XS_REGION_COUNT)
#: Indices lie between -INDEX_END and INDEX_END (xstream/sigseg/internal.h).
INDEX_END = 2**62
SCALED, RUNNING, GIVEN = (
    int(lib.XS_START_SCALED), int(lib.XS_START_RUNNING), int(lib.XS_START_GIVEN)
)  # fmt: skip
_IMPORTS = """\
\"\"\"Written by xstream for one region; made again when it is missing.\"\"\"
from collections import namedtuple
import numpy as np
from numpy import dtype
from xstream.kernels._numba import fill, guarded_call
from xstream.kernels._rolling import rolling_maker
from xstream.kernels._weak import as_weak as _weak
from xstream.kernels._links import (
    allocate, block, count, done, keep, noted, put, put_real, readonly, real, refuse, scaled, send,
    tried, window, word,
)
"""


@dataclass(frozen=True, slots=True)
class Value:
    """A field of the tuple between two stages, as the names of variables."""

    type: FieldType
    name: str  # an array, or a number
    start: str = "0"  # of a segment
    origin: int = -1  # the field of the region's input that it passes on


class RegionSource:
    """Generates the functions of a region and collects the layout of its frame for the core."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.stages = stages
        self.layout = Layout()
        #: Functions that are compiled before the region's own, in the order of their calls.
        self.functions: list[str] = []
        #: By stage: the fields that its kernel emits.
        self.links: dict[int, tuple[tuple[str, str], ...]] = {}
        self.outputs: tuple[tuple[int, int], ...] = ()
        self.used = 0
        self._lines: list[str] = []
        self._depth = 1
        self._texts: list[str] = []
        inputs = stages[0].inputs
        #: Whether tuples have no segments: several can then be processed at once.
        self.rows = not inputs.segment_bits
        self.members_at = int(lib.XS_REGION_INPUTS) + _words(inputs)
        self.tuples_at = self.members_at + len(stages)
        self.samples_at = self.tuples_at + len(stages)
        self.outputs_at = self.samples_at + len(stages)
        self.words = self.outputs_at + MAX_FIELDS
        self._write()
        states = {
            f"State_{i} = namedtuple('State', {list(stage.code.kernel.state_names)!r})"
            for i, stage in enumerate(stages)
            if stage.code is not None and stage.code.kernel.state_names
        }
        constants = [f"{name} = {text}" for text, name in self.layout.constants.items()]
        self.text = "\n".join([_IMPORTS, *constants, *sorted(states), "", *self._texts, ""])

    # -- lines and functions -------------------------------------------------------------------

    def put(self, *lines: str) -> None:
        """Add lines to the function that is being written."""
        self._lines += ["    " * self._depth + line for line in lines]

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Add an indented block."""
        self.put(header)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def function(self, name: str, parameters: str) -> Iterator[None]:
        """Write another function; the current one is continued afterwards."""
        outer, depth = self._lines, self._depth
        self._lines, self._depth = [], 1
        yield
        self._texts += [f"def {name}({parameters}):", *self._lines, "", ""]
        self.functions.append(name)
        self._lines, self._depth = outer, depth

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
            self.put(f"{name} = {_frame_words(word, frame)}")
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

    def _dtype(self, type_: Segment) -> str:
        return self.layout.dtype_name(type_.dtype)

    def _array(self, value: Value) -> str:
        """The array of a segment; that of an input field is made where it is first read."""
        assert isinstance(value.type, Segment)
        if value.origin >= 0 and not self.used >> value.origin & 1:
            self.used |= 1 << value.origin
            at = int(lib.XS_REGION_INPUTS) + _words(self.stages[0].inputs, value.origin)
            self.put(
                f"{value.name} = readonly(block(word(R, {at}), word(R, {at + 1}), "
                f"{self._dtype(value.type)}))"
            )
        return value.name

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
        elif stage.looped is not None:
            self._loop(i, values)
        else:
            self._kernel(i, values)

    def _count(self, i: int, values: list[Value]) -> None:
        """The core counts for the first stage."""
        if i == 0:
            return
        first = _first_segment(values)
        self.put(f"count(R, {self.tuples_at + i}, 1)")
        width = "1" if first is None else f"len({self._array(first)})"
        self.put(f"count(R, {self.samples_at + i}, {width})")

    def _kernel(self, i: int, values: list[Value], ended: bool = False) -> None:
        """Call a kernel and handle its result."""
        stage, code = self.stages[i], self._code(i)
        first = _first_segment(values)
        start = first.start if first is not None else "0"
        self._frame(i)
        if first is not None:
            self._array(first)
            if ended:  # outputs start where those of the last tuple did
                start = f"word(F{i}, {_first_start(stage.inputs)})"
            elif code.kernel.at_end:
                self.put(f"put(F{i}, {_first_start(stage.inputs)}, {start})")
        given = self._arguments(i, values)
        if code.mode == "iterate":
            self._link(i)
            given["out"] = f"link_{i}(R, {start})"
        filled = self._filled(i, values, start, given) if _fills(code) else None
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

    def _code(self, i: int) -> CompiledKernel:
        code = self.stages[i].code
        assert code is not None
        return code

    def _frame(self, i: int) -> None:
        """The address of the member's frame."""
        self.put(f"F{i} = word(R, {self.members_at + i})")

    def _words(self, i: int) -> tuple[list[str], list[str]]:
        """Expressions for the member's arguments and states, from where its adapter reads them."""
        stage, code = self.stages[i], self._code(i)
        layout = self.layout
        layout.next = code.arguments_at
        arguments = [layout.argument(type_).expression for type_ in stage.arguments]
        layout.next = code.states_at
        states = [layout.state(state).expression for state in code.kernel.states]
        return (
            [_frame_words(text, f"F{i}") for text in arguments],
            [_frame_words(text, f"F{i}") for text in states],
        )

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
                given[name] = self._array(values[source])
            else:
                given[name] = values[source].name
        if states:
            items = ", ".join(states)
            given["state"] = f"State_{i}({items})" if kernel.state_names else items
        return given

    def _fail(self, i: int, values: list[Value], status: str) -> None:
        """Keep the stage's tuple for the message, unless a later stage failed first, and return."""
        with self.block(f"if word(R, {STATUS}) == 0:"):
            code = int(getattr(lib, f"XS_REGION_{status}"))
            self.put(f"put(R, {STATUS}, {code})", f"put(R, {STAGE}, {i})")
        if values:
            with self.block(f"if word(R, {STAGE}) == {i}:"):
                self._keep_tuple(i, values)
        self.put("return False")

    def _keep_tuple(self, i: int, values: list[Value]) -> None:
        """Numbers into the stage's frame, and which fields are input; the core copies arrays."""
        at = int(lib.XS_FRAME_INPUTS)
        for field, value in enumerate(values):
            if not isinstance(value.type, Segment):
                real = value.type.slot == "float64"
                what = f"np.float64({value.name})" if real else f"np.int64({value.name})"
                self.put(f"put{'_real' if real else ''}(F{i}, {at}, {what})")
                at += 1
                continue
            if value.origin >= 0:
                self.put(f"put(F{i}, {at + 1}, {-1 - value.origin})")
            else:
                self.put(f"keep(R, {i}, {field}, {value.name}, {value.start})")
            at += 3

    # -- results ---------------------------------------------------------------------------------

    def _is_last(self, i: int) -> bool:
        return i + 1 == len(self.stages)

    def _start(
        self, i: int, field: int, values: list[Value], start: str, width: str, given: str
    ) -> str:
        """Where an output segment starts; one outside the indices of a signal is a failure."""
        code = self._code(i)
        rule, name = code.rules[field], f"s{i}_{field}"
        if rule.start_rule == SCALED:
            self.put(f"{name} = scaled({start}, {rule.num}, {rule.den})")
        elif rule.start_rule == RUNNING:
            self.put(f"{name} = word(F{i}, {code.outputs_at + field})")
        else:
            self.put(f"{name} = {given if rule.start_rule == GIVEN else start}")
        fits = f"-{INDEX_END} <= {name} <= {INDEX_END} and {width} <= {INDEX_END} - {name}"
        with self.block(f"if not ({fits}):"):
            self.put(f"refuse(R, {i}, {name}, {width})")
            self._give_up(i, values)
        if rule.start_rule == RUNNING:
            self.put(f"put(F{i}, {code.outputs_at + field}, {name} + {width})")
        return name

    def _give_up(self, i: int, values: list[Value]) -> None:
        """The output of a stage could not be made: in `after`, its caller has the tuple."""
        if self._code(i).mode == "iterate":
            self.put("return False")
        else:
            self._fail(i, values, "UNFIT")

    def _space(
        self, i: int, field: int, type_: Segment, start: str, width: str, values: list[Value]
    ) -> str:
        """An array to fill: of the segment that leaves the region, or between two stages."""
        name, dtype = f"o{i}_{field}", self._dtype(type_)
        if not self._is_last(i):
            self.put(f"{name} = np.empty({width}, {dtype})")
            return name
        self.put(f"p{i}_{field} = allocate(R, {field}, {width}, {start})")
        with self.block(f"if p{i}_{field} == 0 and word(R, {STATUS}) != 0:"):
            self._give_up(i, values)
        self.put(f"{name} = block(p{i}_{field}, {width}, {dtype})")
        return name

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
            first = _first_segment(values)
            have = "0" if first is None else f"len({first.name})"
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

    # -- loops over samples ------------------------------------------------------------------------

    def _loop(self, i: int, values: list[Value]) -> None:
        """One loop for all neighbouring stages of one sample."""
        end = i
        while end < len(self.stages) and self.stages[end].looped is not None:
            end += 1
        members = range(i, end)
        first = _first_segment(values)
        assert first is not None
        hoisted = {m: self._hoisted(m, values if m == i else None) for m in members}
        sampled = self._sampled(i, values)
        self.put(f"n{i} = len({self._array(sampled[0])})")
        for value in sampled[1:]:
            with self.block(f"if len({self._array(value)}) != n{i}:"):
                self._fail(i, values, "RERUN")
        last = end - 1
        types = self._code(last).outputs
        assert types is not None
        spaces = [
            self._space(last, field, type_, first.start, f"n{i}", [])
            for field, type_ in enumerate(types.types)
            if isinstance(type_, Segment)
        ]
        self.put(f"bad{i} = False")
        with self.block(f"for j in range(n{i}):"):
            self._loop_body(members, values, hoisted, spaces)
        with self.block(f"if bad{i}:"):
            self._fail(i, values, "RERUN")
        for m in members[1:]:
            self.put(f"count(R, {self.tuples_at + m}, 1)", f"count(R, {self.samples_at + m}, n{i})")
        made = [
            Value(type_, space, first.start)
            for type_, space in zip(types.types, spaces, strict=True)
        ]
        self._next(last, made)

    def _sampled(self, i: int, values: list[Value]) -> list[Value]:
        each = self._each(i)
        return [
            values[source]
            for source, sampled in zip(each.sources, each.sampled, strict=True)
            if sampled
        ]

    def _each(self, i: int) -> EachFunction:
        each = self.stages[i].looped
        assert each is not None
        return each

    def _hoisted(self, m: int, values: list[Value] | None) -> dict[int, str]:
        """Arguments of parameters that are the same for all samples, by number."""
        each, stage = self._each(m), self.stages[m]
        self._frame(m)
        arguments, _ = self._words(m)
        fields = len(stage.inputs)
        found = {}
        for number, source in enumerate(each.sources):
            if each.sampled[number]:
                continue
            name = f"g{m}_{number}"
            if source >= fields:
                expression = arguments[source - fields]
            else:
                assert values is not None
                expression = values[source].name
            self.put(f"{name} = {each.argument(number, expression)}")
            found[number] = name
        return found

    def _loop_body(
        self,
        members: range,
        values: list[Value],
        hoisted: dict[int, dict[int, str]],
        spaces: list[str],
    ) -> None:
        """The functions of all stages on one sample."""
        samples = [f"{value.name}[j]" for value in values]
        for m in members:
            each = self._each(m)
            given = [
                samples[source] if sampled else hoisted[m][number]
                for number, (source, sampled) in enumerate(
                    zip(each.sources, each.sampled, strict=True)
                )
            ]
            self.put(f"q{m} = tried(F{m}, each_{m}, ({', '.join(given)}, ))")
            with self.block(f"if q{m}[0]:"):
                self.put(f"bad{members[0]} = True", "break")
            samples = []
            for field, dtype in enumerate(each.returns):
                item = f"q{m}[1][{field}]" if each.several else f"q{m}[1]"
                self.put(f"y{m}_{field} = {cast(dtype.name, item)}")
                samples.append(f"y{m}_{field}")
        for space, sample in zip(spaces, samples, strict=True):
            self.put(f"{space}[j] = {sample}")


# -- words and expressions -----------------------------------------------------------------------


def _words(inputs: Schema, fields: int | None = None) -> int:
    """How many words the first fields of a tuple take."""
    return sum(3 if isinstance(type_, Segment) else 1 for type_ in inputs.types[:fields])


def _first_segment(values: list[Value]) -> Value | None:
    return next((value for value in values if isinstance(value.type, Segment)), None)


def _first_start(inputs: Schema) -> int:
    """The word of a member's frame with the start of its first segment."""
    bits = inputs.segment_bits
    return int(lib.XS_FRAME_INPUTS) + _words(inputs, (bits & -bits).bit_length() - 1) + 2


def _fills(code: CompiledKernel) -> bool:
    return code.mode == "map" and "out" in code.kernel.parameters


def _frame_words(expression: str, frame: str) -> str:
    """An expression of an adapter's, over `w[3]` and `f[3]`, for a certain frame."""
    expression = re.sub(r"\bf\[(\d+)\]", rf"real({frame}, \1)", expression)
    expression = re.sub(r"\bw\[(\d+)\]", rf"word({frame}, \1)", expression)
    array = r"carray\(_at\((word\(\w+, \d+\))\), \((word\(\w+, \d+\)),\), ([\w.]+)\)"
    return re.sub(array, r"block(\1, \2, \3)", expression).replace("_readonly(", "readonly(")


def cast(kind: str, expression: str) -> str:
    """A number as one of a kind, as it would be after travelling in a slot or an array."""
    if kind == "bool":
        return f"({expression} != 0)"
    return f"np.{kind}({expression})"
