"""aggregate: values of groups of rows in windows by time or count, several in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd
from typing import Any

from xstream._native import ffi, lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import MAX_SIZE, Operator
from xstream.engine.schema import Field, Scalar, Schema, Segment, shortened
from xstream.errors import GraphError, KernelError, SchemaError
from xstream.kernels.apply import UserKernel, raised_by
from xstream.kernels.kernel import Kernel
from xstream.ops.scale import MAX_TERM, Scale
from xstream.sigseg import Timebase
from xstream.sigseg.timebase import simplest_fraction

__all__ = ["KINDS", "Aggregate", "Value", "values_of"]

#: The kinds of values, and their numbers in the C core.
KINDS = {
    "count": lib.XS_COUNT, "sum": lib.XS_SUM, "mean": lib.XS_MEAN, "std": lib.XS_STD,
    "min": lib.XS_MIN, "max": lib.XS_MAX, "first": lib.XS_FIRST, "last": lib.XS_LAST,
    "distinct": lib.XS_DISTINCT,
}  # fmt: skip
#: The types of fields and samples, and their numbers in the C core.
COLUMN_TYPES = {
    name: getattr(lib, f"XS_COLUMN_{name.upper()}")
    for name in (
        "int64", "float64", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32",
        "float32",
    )
}  # fmt: skip
#: The largest number of values that a group keeps for a window of rows.
MAX_KEPT = 2**27
#: The value of `time=` for samples that have a rate.
TIMEBASE = "timebase"


@dataclass(frozen=True)
class Value:
    """A value of each group: its name, its kind or kernel, and its field."""

    name: str
    how: str | Kernel
    of: str | None = None

    @property
    def shown(self) -> str:
        """The value as it was declared."""
        how = self.how if isinstance(self.how, str) else self.how.name
        return f"{how}({self.of})" if self.of is not None else how


def values_of(asked: object) -> tuple[Value, ...]:
    """Return the values of a dictionary of kinds or kernels, or (kind or kernel, field)."""
    if not isinstance(asked, Mapping) or not asked:
        raise GraphError(
            "aggregate: values must be a dictionary such as "
            f"{{'n': 'count', 'level': ('mean', 'x')}}, not {asked!r}"
        )
    values = []
    for name, what in asked.items():
        how, of = what if isinstance(what, tuple) and len(what) == 2 else (what, None)
        known = isinstance(how, Kernel) or (isinstance(how, str) and how in KINDS)
        if not isinstance(name, str) or not known or not (of is None or isinstance(of, str)):
            raise GraphError(
                f"aggregate: value {name!r} is one of {', '.join(KINDS)} or a kernel, alone or "
                f"with the name of a field, not {what!r}"
            )
        values.append(Value(name, how, of))
    return tuple(values)


@dataclass(frozen=True)
class Aggregate(Operator):
    """Values of every group in every window (papers: Linear Road thesis, section 5.4.2).

    Rows are the tuples of a stream of numbers, or the samples of a stream of segments; segments of
    one tuple are columns, and numbers next to them are the same in all its rows. Windows are
    described at `Stream.aggregate`.
    """

    kind = "aggregate"
    values: tuple[Value, ...]
    by: tuple[str, ...] = ()
    window: Any = None
    step: Any = None
    time: str | None = None
    report: str = "close"
    late: str = "error"
    lateness: int = 0
    empty: bool = field(default=False)

    def __post_init__(self) -> None:
        if self.report not in ("close", "change"):
            raise GraphError(f"aggregate: report must be 'close' or 'change', not {self.report!r}")
        if self.late not in ("error", "drop"):
            raise GraphError(f"aggregate: late must be 'error' or 'drop', not {self.late!r}")
        if self.window is None and not (self.step is None and self.time is None):
            raise GraphError("aggregate: step and time require a window")
        if self.window is not None:
            self._check_sizes()
        whole = isinstance(self.lateness, int) and 0 <= self.lateness <= MAX_SIZE
        timed = self.time is not None and self.time != TIMEBASE
        if not whole or (self.lateness and (self.report == "change" or not timed)):
            raise GraphError(
                "aggregate: lateness is a whole number in units of the time field, for windows "
                f"that are reported when they close, not {shortened(self.lateness)}"
            )
        if self.empty and (self.by or self.report == "change" or self._counts):
            raise GraphError(
                "aggregate: empty windows are reported where there are no groups, when a window "
                "of time closes"
            )

    def _check_sizes(self) -> None:
        for name in ("window", "step"):
            size = getattr(self, name)
            if name == "step" and size is None:
                object.__setattr__(self, "step", self.window)
                continue
            number = isinstance(size, int | float | Fraction) and not isinstance(size, bool)
            fine = number and 0 < size <= MAX_SIZE
            if not fine or not (size == int(size) or self.time == TIMEBASE):
                what = "a positive number of seconds" if self.time == TIMEBASE else (
                    "a positive whole number"
                )  # fmt: skip
                raise GraphError(f"aggregate: {name} is {what}, not {shortened(size)}")

    @property
    def _counts(self) -> bool:
        """Whether windows are counted in rows."""
        return self.window is not None and self.time is None

    # -- what comes out ----------------------------------------------------------------------

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        schema = inputs[0]
        fields = [] if self.window is None else self._bounds(schema)
        fields += [Field(name, self._key_type(schema, name)) for name in self.by]
        fields += [Field(value.name, self._value_type(schema, value)) for value in self.values]
        self._pane(schema)
        return (Schema(tuple(fields)),)

    def _bounds(self, schema: Schema) -> list[Field]:
        segment, index = schema.only_segment, Scalar("int64")
        if segment is not None and (self.time == TIMEBASE or self._sampled(schema)):
            index = Scalar("int64", segment.timebase)
        return [Field("start", index), Field("stop", index)]

    def _sampled(self, schema: Schema) -> bool:
        """Whether windows are of the samples of one signal, identified by their indices."""
        return schema.only_segment is not None and not self.by and self.time in (None, TIMEBASE)

    def _number(self, schema: Schema, name: str) -> str:
        """Return the type of the numbers of a field; raise a SchemaError if it has none."""
        for field_ in schema:
            if field_.name != name:
                continue
            type_ = field_.type
            kind = type_.dtype.name if isinstance(type_, Segment) else type_.kind
            if kind in COLUMN_TYPES:
                return kind
            raise SchemaError(
                f"aggregate, port 'in': field {name!r} is {type_}: rows have real numbers of at "
                "most 64 bits with a sign"
            )
        known = ", ".join(field_.name for field_ in schema)
        raise SchemaError(f"aggregate, port 'in': there is no field {name!r} among {known}")

    def _key_type(self, schema: Schema, name: str) -> Scalar:
        kind = self._number(schema, name)
        if kind.startswith("float"):
            raise SchemaError(f"aggregate, port 'in': groups must be by integers, not by {kind}")
        return Scalar(kind)

    def _of(self, schema: Schema, value: Value) -> str | None:
        """Return the field of a value; a stream of one field needs no name."""
        if value.of is not None or value.how == "count":
            return value.of
        if len(schema) == 1:
            return schema.fields[0].name
        raise SchemaError(
            f"aggregate, port 'in': {value.shown} is of one of the fields "
            f"{', '.join(field_.name for field_ in schema)}: name it"
        )

    def _value_type(self, schema: Schema, value: Value) -> Scalar:
        of = self._of(schema, value)
        kind = "int64" if of is None else self._number(schema, of)
        real = kind.startswith("float")
        if isinstance(value.how, Kernel):
            return self._kernel_type(value.how, real)
        if value.how in ("count", "distinct"):
            return Scalar("int64")
        if value.how in ("mean", "std"):
            return Scalar("float64")
        if value.how == "sum":
            return Scalar("float64" if real else "int64")
        return Scalar(kind)

    def _kernel_type(self, kernel: Kernel, real: bool) -> Scalar:
        (result,) = _applied(kernel).outputs((_window_of(real),))
        type_ = result.types[0]
        if len(result) != 1 or not isinstance(type_, Scalar) or kernel.states or kernel.at_end:
            raise KernelError(
                f"kernel {kernel.name!r}: a value of a window is one number, from the array of its "
                "rows and without state"
            )
        return type_

    # -- windows -----------------------------------------------------------------------------

    def _pane(self, schema: Schema) -> tuple[Scale, int, int, int]:
        """Return the start and size of panes, and the panes per window and per step."""
        if self.window is None:
            return Scale(), 1, 1, 1
        if self.time == TIMEBASE:
            return self._pane_of_samples(schema)
        window, step = int(self.window), int(self.step)
        pane = gcd(window, step)
        if self.time is not None:
            self._time_type(schema)
        else:
            self._check_kept(window // pane)
        return Scale(num=pane), pane, window // pane, step // pane

    def _check_kept(self, panes: int) -> None:
        """Check that the rows that a group keeps for a window are not too many."""
        rows = sum(
            isinstance(value.how, Kernel) or value.how == "distinct" for value in self.values
        )
        if panes * (1 + 4 * len(self.values)) + rows * int(self.window) > MAX_KEPT:
            raise GraphError(
                f"aggregate: windows of {self.window} rows every {self.step} rows keep too much "
                f"for each group, more than {MAX_KEPT} numbers"
            )

    def _time_type(self, schema: Schema) -> None:
        assert self.time is not None
        if self._number(schema, self.time).startswith(("float", "bool")):
            raise SchemaError(
                f"aggregate, port 'in': time is a field of whole numbers, and {self.time!r} is not"
            )

    def _pane_of_samples(self, schema: Schema) -> tuple[Scale, int, int, int]:
        segment = schema.only_segment
        timebase = Timebase.index() if segment is None else segment.timebase
        rate = timebase.exact_rate_hz
        if rate is None:
            raise SchemaError(
                "aggregate, port 'in': windows of seconds need a stream of segments with a rate, "
                f"not {schema}"
            )
        window, step = (simplest_fraction(size) for size in (self.window, self.step))
        shared = window.denominator * step.denominator
        pane = Fraction(gcd(int(window * shared), int(step * shared)), shared)
        slope, offset = pane * rate, -timebase.exact_start_time * rate
        den = slope.denominator * offset.denominator
        shift = offset.numerator // offset.denominator
        scale = Scale(int(slope * den), den, int((offset - shift) * den), shift)
        if max(scale.num, scale.den, abs(scale.shift)) > MAX_TERM:
            raise SchemaError(
                f"aggregate, port 'in': windows of {self.window} s every {self.step} s cannot be "
                f"placed exactly in a signal at {timebase}: that takes more than 64 bits"
            )
        return scale, 1, int(window / pane), int(step / pane)

    # -- in the core -------------------------------------------------------------------------

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        schema = inputs[0]
        columns: list[str] = []

        def column(name: str | None) -> int:
            if name is None:
                return -1
            if name not in columns:
                columns.append(name)
            return columns.index(name)

        keys = [column(name) for name in self.by]
        values = [self._native_value(plan, schema, value, column) for value in self.values]
        timed = self.time is not None and self.time != TIMEBASE
        time_column = column(self.time) if timed else lib.XS_TIME_OF_SAMPLE
        names = [field_.name for field_ in schema]
        read = [(names.index(name), COLUMN_TYPES[self._number(schema, name)]) for name in columns]
        scale, pane_rows, per, every = self._pane(schema)
        how = ffi.new("xs_aggregate *")
        parts = (
            ffi.new("xs_column[]", read or 1),
            ffi.new("int32_t[]", keys or 1),
            ffi.new("xs_aggregate_value[]", values),
        )
        how.column, how.key_column, how.value = parts
        how.columns, how.keys, how.values = len(read), len(keys), len(values)
        how.windowed, how.time_column = self.window is not None, time_column
        how.pane = (scale.num, scale.den, scale.rest, scale.shift)
        how.pane_rows, how.per, how.every, how.lateness = pane_rows, per, every, self.lateness
        how.change, how.drop_late = self.report == "change", self.late == "drop"
        how.empty = self.empty
        if self._counts:
            sampled = self._sampled(schema)
            return checked(lib.xs_op_aggregate_rows(plan.handle, how, sampled))
        return checked(lib.xs_op_aggregate(plan.handle, how))

    def _native_value(self, plan: NativePlan, schema: Schema, value: Value, column: Any) -> Any:
        of = self._of(schema, value)
        real = of is not None and self._number(schema, of).startswith("float")
        if isinstance(value.how, str):
            return (KINDS[value.how], column(of), real, ffi.NULL)
        applied, window = _applied(value.how), _window_of(real)
        kernel = applied.create(plan, (window,), applied.outputs((window,)))
        return (lib.XS_APPLY, column(of), real, kernel)

    def raised(self, op: Any) -> BaseException | None:
        raising = lib.xs_aggregate_rows_raised if self._counts else lib.xs_aggregate_raised
        kernel = raising(op)
        return raised_by(kernel) if kernel else None


def _applied(kernel: Kernel) -> UserKernel:
    return UserKernel("map", kernel.name, kernel=kernel)


def _window_of(real: bool) -> Schema:
    """Run a kernel of the user over the values of one group in one window."""
    return Schema((Field("value", Segment("float64" if real else "int64")),))
