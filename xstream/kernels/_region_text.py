"""The text of a region's functions: lines, variables, and what every stage needs; see `_region`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from xstream._native import lib
from xstream.engine.schema import MAX_FIELDS, FieldType, Schema, Segment
from xstream.kernels._adapter import CompiledKernel
from xstream.kernels._frame import Layout
from xstream.kernels.stage import Stage

__all__ = ["RegionText", "Value"]

STATUS, STAGE, ENDED = (
    int(lib.XS_REGION_STATUS), int(lib.XS_REGION_STAGE), int(lib.XS_REGION_ENDED)
)  # fmt: skip
VERDICT, COUNT = int(lib.XS_FRAME_VERDICT), int(lib.XS_REGION_COUNT)
#: Indices lie between -INDEX_END and INDEX_END (xstream/sigseg/internal.h).
INDEX_END = 2**62
SCALED, RUNNING, GIVEN = (
    int(lib.XS_START_SCALED), int(lib.XS_START_RUNNING), int(lib.XS_START_GIVEN)
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """A field of the tuple between two stages, as the names of variables."""

    type: FieldType
    name: str  # an array, or a number
    start: str = "0"  # of a segment
    origin: int = -1  # the field of the region's input that it passes on
    folded: bool = False  # computed in parts, when they are read


class RegionText:
    """Writes functions line by line and collects the layout of the region's frame for the core."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.stages = stages
        self.layout = Layout()
        #: Functions that are compiled before the region's own, in the order of their calls.
        self.functions: list[str] = []
        #: Input fields that are read as arrays, and those that are walked, by bit.
        self.used = self.walked = 0
        #: By the first stage of a loop that is folded into a statistic: the type of its samples.
        self.folds: dict[int, str] = {}
        self._lines: list[str] = []
        self._depth = 1
        self._texts: list[str] = []
        inputs = stages[0].inputs
        #: Whether tuples have no segments: several can then be processed at once.
        self.rows = not inputs.segment_bits
        self.members_at = int(lib.XS_REGION_INPUTS) + words_of(inputs)
        self.tuples_at = self.members_at + len(stages)
        self.samples_at = self.tuples_at + len(stages)
        self.outputs_at = self.samples_at + len(stages)
        self.words = self.outputs_at + MAX_FIELDS

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

    # -- variables ---------------------------------------------------------------------------------

    def _dtype(self, type_: Segment) -> str:
        return self.layout.dtype_name(type_.dtype)

    def _array(self, value: Value) -> str:
        """The array of a segment; that of an input field is made where it is first read."""
        assert isinstance(value.type, Segment)
        if value.origin >= 0 and not self.used >> value.origin & 1:
            self.used |= 1 << value.origin
            at = self._input_at(value)
            self.put(
                f"{value.name} = readonly(block(word(R, {at}), word(R, {at + 1}), "
                f"{self._dtype(value.type)}))"
            )
        return value.name

    def _pieces(self, value: Value) -> str:
        """A segment that a kernel walks. One of an array lives as long as the array, which is used
        after the call: to report the tuple that the kernel failed on."""
        assert isinstance(value.type, Segment)
        if value.origin < 0:
            return f"pieces_of({value.name})"
        self.walked |= 1 << value.origin
        at = self._input_at(value)
        listed = f"word(R, {int(lib.XS_FRAME_PIECES)}) >> {value.origin} & 1"
        maker = self.layout.pieces_maker(value.type.dtype)
        return f"{maker}(word(R, {at}), word(R, {at + 1}), {listed})"

    def _width(self, value: Value) -> str:
        """The number of samples of a segment."""
        if value.origin < 0:
            return f"len({value.name})"
        return f"word(R, {self._input_at(value) + 1})"

    def _input_at(self, value: Value) -> int:
        """The first word of an input field."""
        return int(lib.XS_REGION_INPUTS) + words_of(self.stages[0].inputs, value.origin)

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
            [frame_words(text, f"F{i}") for text in arguments],
            [frame_words(text, f"F{i}") for text in states],
        )

    # -- failures ----------------------------------------------------------------------------------

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

    # -- outputs -----------------------------------------------------------------------------------

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


# -- words and expressions -----------------------------------------------------------------------


def words_of(inputs: Schema, fields: int | None = None) -> int:
    """How many words the first fields of a tuple take."""
    return sum(3 if isinstance(type_, Segment) else 1 for type_ in inputs.types[:fields])


def first_segment(values: list[Value]) -> Value | None:
    return next((value for value in values if isinstance(value.type, Segment)), None)


def first_start(inputs: Schema) -> int:
    """The word of a member's frame with the start of its first segment."""
    bits = inputs.segment_bits
    return int(lib.XS_FRAME_INPUTS) + words_of(inputs, (bits & -bits).bit_length() - 1) + 2


def fills(code: CompiledKernel) -> bool:
    return code.mode == "map" and "out" in code.kernel.parameters


def frame_words(expression: str, frame: str) -> str:
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
