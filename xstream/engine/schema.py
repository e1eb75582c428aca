"""Schemas: the fields of the tuples of a stream, which are scalars and segments.

A stream of segments is a stream whose tuples have one field, a `Segment`; a stream of plain
records has only `Scalar` fields. Both are supported equally (XStream, section III.A).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream.errors import SchemaError
from xstream.sigseg import SigSeg, Timebase
from xstream.sigseg._interop import holdable_dtype

__all__ = ["Field", "FieldType", "Out", "Scalar", "Schema", "SchemaLike", "Segment", "schema"]

MAX_FIELDS = 64
#: The largest width that can be declared.
MAX_WIDTH = 2**60
#: The largest number of output samples per input sample.
MAX_RATE = 2**20


def shortened(value: Any) -> str:
    """A number as text; a very large one by its size, because Python refuses to print it."""
    whole = isinstance(value, int) and not -(2**200) < value < 2**200
    return f"a number of {value.bit_length()} bits" if whole else f"{value!r}"


#: The scalar types, and the 64-bit slot type that holds each of them in a tuple.
_SLOTS = {
    "bool": "bool", "int8": "int64", "int16": "int64", "int32": "int64", "int64": "int64",
    "uint8": "int64", "uint16": "int64", "uint32": "int64", "float32": "float64",
    "float64": "float64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scalar:
    """A field that is one number, by the name of its type: `bool`, `int64`, `float32` and so on.

    Types smaller than `int64` and `float64` restrict the values of a field: a float is rounded to
    `float32`, and an integer must fit. An integer that is a sample index can have the `timebase` of
    its signal, so ranges of one signal can be cut out of signals at other rates.

    >>> import xstream as xs
    >>> str(xs.Scalar("int64", timebase=xs.Timebase(rate_hz=8.0)))
    'int64 at 8 Hz'
    """

    kind: str
    timebase: Timebase | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in _SLOTS:
            raise SchemaError(f"a scalar is one of {', '.join(_SLOTS)}, not {self.kind!r}")
        _check_timebase(self.timebase)
        if self.timebase is not None and self.slot != "int64":
            raise SchemaError(f"the index of a sample is a whole number, not a {self.kind}")

    @property
    def slot(self) -> str:
        """The slot type: `bool`, `int64` or `float64`.

        >>> Scalar("int16").slot
        'int64'
        """
        return _SLOTS[self.kind]

    @property
    def narrow(self) -> bool:
        """Whether the type is smaller than its slot type.

        >>> Scalar("int16").narrow, Scalar("int64").narrow
        (True, False)
        """
        return self.kind != self.slot

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest integer of an integer type.

        >>> Scalar("int8").limits
        (-128, 127)
        """
        bounds = np.iinfo(self.kind)
        return int(bounds.min), int(bounds.max)

    def __str__(self) -> str:
        return self.kind if self.timebase is None else f"{self.kind} at {self.timebase}"


@dataclass(frozen=True, slots=True)
class Segment:
    """A field that is a SigSeg of one dtype in one timebase.

    >>> import numpy as np, xstream as xs
    >>> str(xs.Segment(np.float32, xs.Timebase(rate_hz=8000.0)))
    'segment of float32 at 8000 Hz'
    """

    dtype: np.dtype[Any]
    timebase: Timebase

    def __init__(self, dtype: npt.DTypeLike, timebase: Timebase | None = None) -> None:
        _check_timebase(timebase)
        object.__setattr__(self, "dtype", holdable_dtype(dtype))
        object.__setattr__(self, "timebase", timebase or Timebase.index())

    def __str__(self) -> str:
        where = "by index" if self.timebase.is_index else f"at {self.timebase}"
        return f"segment of {self.dtype} {where}"


def _check_timebase(timebase: object) -> None:
    if timebase is not None and not isinstance(timebase, Timebase):
        raise SchemaError(f"a timebase is an xs.Timebase, not {timebase!r}")


FieldType = Scalar | Segment


@dataclass(frozen=True, slots=True)
class Field:
    """A field's name and type."""

    name: str
    type: FieldType


@dataclass(frozen=True)
class Schema:
    """The fields of a stream's tuples, in order.

    A query may have many thousands of operators with the same few schemas, so what is derived from
    the fields is computed once.

    >>> import xstream as xs
    >>> found = xs.schema({"index": int, "value": float})
    >>> [field.name for field in found], len(found), found.only_segment
    (['index', 'value'], 2, None)
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.fields) <= MAX_FIELDS:
            raise SchemaError(f"a tuple has 1 to {MAX_FIELDS} fields, not {len(self.fields)}")
        names = [field.name for field in self.fields]
        for name in names:
            if names.count(name) > 1:
                raise SchemaError(f"two fields are called {name!r}")

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.fields)

    @cached_property
    def types(self) -> tuple[FieldType, ...]:
        """The types of the fields, which decide whether a stream fits a port."""
        return tuple(field.type for field in self.fields)

    @cached_property
    def segment_bits(self) -> int:
        """A bit mask of the fields that are segments, for the core."""
        return sum(1 << i for i, type_ in enumerate(self.types) if isinstance(type_, Segment))

    @property
    def only_segment(self) -> Segment | None:
        """The segment type of a stream of segments, or None."""
        first = self.fields[0].type
        return first if len(self.fields) == 1 and isinstance(first, Segment) else None

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        if len(self.fields) == 1:
            return str(self.fields[0].type)
        return "(" + ", ".join(f"{field.name}: {field.type}" for field in self.fields) + ")"


@dataclass(frozen=True, slots=True)
class Out:
    """The declaration of an output segment of a kernel that differs from its input.

    `rate` is the number of output samples per input sample: it scales the timebase, the width of
    `out` arrays and, unless `start` says otherwise, the start. `start` is `"input"` (where the
    input starts), `"scaled"`, `"running"` (after the last output) or `"given"` (the kernel says:
    `out.emit_at`). `width` fixes the width of `out` arrays; `timebase` replaces the scaled one.

    >>> from fractions import Fraction
    >>> import numpy as np, xstream as xs
    >>> @xs.kernel(out=xs.Out(np.float32, rate=Fraction(1, 2), start="scaled"))
    ... def halve(window, out):
    ...     out[:] = window[::2]
    >>> query = xs.Query()
    >>> source = query.source(xs.io.array(np.zeros(64, np.float32), rate_hz=8.0, window=8))
    >>> out = source.map(halve).collect()
    >>> query.run()[out][0].timebase.rate_hz
    4.0
    """

    dtype: npt.DTypeLike
    width: int | None = None
    rate: Fraction | int = 1
    start: str | None = None
    timebase: Timebase | None = None

    def __post_init__(self) -> None:
        holdable_dtype(self.dtype)
        _check_timebase(self.timebase)
        if self.start not in (None, "input", "scaled", "running", "given"):
            raise SchemaError(
                f"start is 'input', 'scaled', 'running' or 'given', not {self.start!r}"
            )
        self._check_width()
        self._check_rate()

    def _check_width(self) -> None:
        whole = isinstance(self.width, int | np.integer) and not isinstance(self.width, bool)
        if self.width is not None and not (whole and 0 <= self.width <= MAX_WIDTH):
            raise SchemaError(
                f"a width is a number of samples from 0 to {MAX_WIDTH}, not {shortened(self.width)}"
            )

    def _check_rate(self) -> None:
        """Check the rate; its terms must be small enough to scale widths and starts in 64 bits."""
        try:
            rate = Fraction(self.rate)
        except (TypeError, ValueError, OverflowError, ArithmeticError):
            rate = Fraction(0)
        if rate <= 0:
            raise SchemaError(f"a rate is a positive ratio, not {shortened(self.rate)}")
        if rate > MAX_RATE or rate.numerator * rate.denominator > 2**62:
            raise SchemaError(
                f"a rate is a ratio of small numbers, at most {MAX_RATE}, not "
                f"{shortened(self.rate)}"
            )


SchemaLike = Schema | Scalar | Segment | Mapping[str, Any] | tuple[Any, ...] | type | str | Any


def scalar_of(like: Any) -> Scalar:
    """Return the scalar field for a Python type, a numpy dtype or a name."""
    try:
        name = np.dtype(like).name if like is not None else ""
    except TypeError:
        name = ""
    if name not in _SLOTS:
        hint = f": the types are {', '.join(_SLOTS)}" if name else ""
        if like is SigSeg:
            hint = ": declare a segment with xs.Segment(dtype)"
        raise SchemaError(f"a scalar field is a bool, an integer or a float, not {like!r}{hint}")
    return Scalar(name)


def _field_type(like: Any) -> FieldType:
    return like if isinstance(like, Scalar | Segment) else scalar_of(like)


def schema(like: SchemaLike) -> Schema:
    """Return the schema for a type, a dictionary of types or a tuple of types.

    >>> import xstream as xs
    >>> str(schema(float))
    'float64'
    >>> str(schema({"start": int, "level": xs.Segment("float32", xs.Timebase(rate_hz=8.0))}))
    '(start: int64, level: segment of float32 at 8 Hz)'
    """
    if isinstance(like, Schema):
        return like
    if isinstance(like, Mapping):
        for name in like:
            if not isinstance(name, str):
                raise SchemaError(f"the name of a field is a string, not {name!r}")
        return Schema(tuple(Field(name, _field_type(type_)) for name, type_ in like.items()))
    if isinstance(like, tuple):
        return Schema(tuple(Field(f"f{i}", _field_type(type_)) for i, type_ in enumerate(like)))
    return Schema((Field("value", _field_type(like)),))
