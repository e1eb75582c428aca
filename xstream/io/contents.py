"""`Contents`: the columns of a source, and the streams that they become."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from xstream.engine.schema import MAX_FIELDS, Field, Scalar, Schema, Segment
from xstream.errors import SchemaError
from xstream.sigseg import Timebase
from xstream.sigseg._interop import holdable_dtype

__all__ = ["LAYOUTS", "Contents"]

LAYOUTS = ("fields", "streams", "interleaved", "rows")


@dataclass(frozen=True)
class Contents:
    """The contents of a source: columns, sample rate, length in rows.

    A row has one sample of each column, or `interleaved` samples if all channels are one column.
    """

    names: tuple[str, ...]
    dtypes: tuple[np.dtype[Any], ...]
    rate_hz: float | None = None
    rows: int | None = None
    start_time: float = 0.0
    interleaved: int = 1

    def schemas(self, where: str, layout: str, timebase: Timebase) -> tuple[Schema, ...]:
        """The streams of a layout; `where` names the source in errors."""
        if len(self.names) > MAX_FIELDS:
            raise SchemaError(
                f"{where} has {len(self.names)} columns, and a source reads at most {MAX_FIELDS}: "
                "choose some"
            )
        if layout == "rows":
            types = [_scalar(where, name, dtype) for name, dtype in self._columns()]
            return (Schema(tuple(map(Field, self.names, types))),)
        fields = [Field(name, Segment(dtype, timebase)) for name, dtype in self._columns()]
        if layout == "streams":
            return tuple(Schema((each,)) for each in fields)
        return (Schema(tuple(fields)),)

    def column_dtypes(self, layout: str) -> list[np.dtype[Any]]:
        """The types of the columns of blocks: those of samples, or of the slots of rows."""
        if layout != "rows":
            return list(self.dtypes)
        return [np.dtype("f8" if dtype.kind == "f" else "i8") for dtype in self.dtypes]

    def _columns(self) -> Iterator[tuple[str, np.dtype[Any]]]:
        return zip(self.names, map(holdable_dtype, self.dtypes), strict=True)


def _scalar(where: str, name: str, dtype: np.dtype[Any]) -> Scalar:
    try:
        return Scalar(dtype.name)
    except SchemaError:
        raise SchemaError(
            f"{where}: column {name!r} is {dtype}, and a row has booleans, integers up to 64 bits "
            "and floats"
        ) from None
