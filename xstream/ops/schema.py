"""What a stream carries: tuples of scalars and segments, declared by a schema.

A stream of segments is a stream whose tuples have one field, a `Segment`; a stream of plain
records has only `Scalar` fields. Either is as good as the other (XStream, section III.A).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream.errors import SchemaError
from xstream.sigseg import Timebase
from xstream.sigseg._interop import holdable_dtype

__all__ = ["Field", "FieldType", "Out", "Scalar", "Schema", "SchemaLike", "Segment", "schema"]

MAX_FIELDS = 64


@dataclass(frozen=True, slots=True)
class Scalar:
    """A field that is one number: `bool`, `int64` or `float64`."""

    kind: str

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True)
class Segment:
    """A field that is a SigSeg of one dtype in one timebase."""

    dtype: np.dtype[Any]
    timebase: Timebase

    def __init__(self, dtype: npt.DTypeLike, timebase: Timebase | None = None) -> None:
        object.__setattr__(self, "dtype", holdable_dtype(dtype))
        object.__setattr__(self, "timebase", timebase or Timebase.index())

    def __str__(self) -> str:
        where = "by index" if self.timebase.is_index else f"at {self.timebase}"
        return f"segment of {self.dtype} {where}"


FieldType = Scalar | Segment


@dataclass(frozen=True, slots=True)
class Field:
    """A field's name and type."""

    name: str
    type: FieldType


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a stream's tuples, in order."""

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

    @property
    def types(self) -> tuple[FieldType, ...]:
        """The types of the fields; what decides whether a stream fits a port."""
        return tuple(field.type for field in self.fields)

    @property
    def segment_bits(self) -> int:
        """Which fields are segments, a bit each, as the core wants it."""
        return sum(1 << i for i, type_ in enumerate(self.types) if isinstance(type_, Segment))

    @property
    def only_segment(self) -> Segment | None:
        """The segment type of a stream of segments; None for any other stream."""
        first = self.fields[0].type
        return first if len(self.fields) == 1 and isinstance(first, Segment) else None

    def __str__(self) -> str:
        if len(self.fields) == 1:
            return str(self.fields[0].type)
        return "(" + ", ".join(f"{field.name}: {field.type}" for field in self.fields) + ")"


@dataclass(frozen=True, slots=True)
class Out:
    """An output segment of a kernel, where it is not simply like the input.

    `rate` is how many samples come out for one that goes in: it scales the timebase, the width of
    `out` arrays and, unless `start` says otherwise, the start. `start` is `"input"` (where the
    input starts), `"scaled"`, `"running"` (behind the last output) or `"given"` (the kernel says:
    `out.emit_at`). `width` fixes the width of `out` arrays; `timebase` replaces the scaled one.
    """

    dtype: npt.DTypeLike
    width: int | None = None
    rate: Fraction | int = 1
    start: str | None = None
    timebase: Timebase | None = None

    def __post_init__(self) -> None:
        if self.start not in (None, "input", "scaled", "running", "given"):
            raise SchemaError(
                f"start is 'input', 'scaled', 'running' or 'given', not {self.start!r}"
            )
        if Fraction(self.rate) <= 0:
            raise SchemaError(f"a rate is a positive ratio, not {self.rate}")


SchemaLike = Schema | Scalar | Segment | Mapping[str, Any] | tuple[Any, ...] | type | str | Any


def scalar_of(like: Any) -> Scalar:
    """The scalar field that a Python type, a numpy dtype or a name means."""
    try:
        kind = np.dtype(like).kind
    except TypeError:
        kind = "?"
    kinds = {"b": "bool", "i": "int64", "u": "int64", "f": "float64"}
    if kind not in kinds:
        raise SchemaError(f"a scalar field is a bool, an integer or a float, not {like!r}")
    return Scalar(kinds[kind])


def _field_type(like: Any) -> FieldType:
    return like if isinstance(like, Scalar | Segment) else scalar_of(like)


def schema(like: SchemaLike) -> Schema:
    """A schema from what is convenient to write.

    >>> import xstream as xs
    >>> str(schema(float))
    'float64'
    >>> str(schema({"start": int, "level": xs.Segment("float32", xs.Timebase(rate_hz=8.0))}))
    '(start: int64, level: segment of float32 at 8 Hz)'
    """
    if isinstance(like, Schema):
        return like
    if isinstance(like, Mapping):
        return Schema(tuple(Field(name, _field_type(type_)) for name, type_ in like.items()))
    if isinstance(like, tuple):
        return Schema(tuple(Field(f"f{i}", _field_type(type_)) for i, type_ in enumerate(like)))
    return Schema((Field("value", _field_type(like)),))
