"""`Wire`: records as they are on the network, and the columns that they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xstream._native import ffi, lib
from xstream.engine.schema import MAX_FIELDS
from xstream.errors import DtypeError, GraphError, SchemaError
from xstream.io.contents import LAYOUTS, Contents
from xstream.io.not_a_number import NANS
from xstream.io.output import Signals, missing
from xstream.sigseg import Timebase
from xstream.sigseg._interop import holdable_dtype

__all__ = ["Wire", "timebase", "wire", "wire_of"]

_KINDS = {"b": "XS_UNSIGNED", "i": "XS_SIGNED", "u": "XS_UNSIGNED", "f": "XS_REAL"}


@dataclass(frozen=True)
class Wire:
    """The layout of records: the dtype of each, and what a source makes of them."""

    dtype: np.dtype[Any]
    names: tuple[str, ...]
    layout: str = "fields"
    #: The samples per record of the only column, if it has all channels.
    interleaved: int = 1

    @property
    def contents(self) -> Contents:
        """The columns."""
        if self.interleaved > 1:
            dtypes = [self.dtype.subdtype[0]] if self.dtype.subdtype else [self.dtype]
        else:
            dtypes = [self._column(name)[0] for name in self.names]
        native = tuple(map(holdable_dtype, dtypes))
        return Contents(self.names, native, interleaved=self.interleaved)

    def _column(self, name: str) -> tuple[np.dtype[Any], int]:
        """The dtype of a column in the byte order of the wire, and its offset."""
        if self.dtype.fields is not None:
            dtype, offset = self.dtype.fields[name][:2]
            return dtype, int(offset)
        if self.dtype.subdtype is not None:
            item = self.dtype.subdtype[0]
            return item, self.names.index(name) * item.itemsize
        return self.dtype, 0

    def native(self, nan: str = "keep") -> tuple[Any, Any]:
        """The record of the C core, and its fields, which must live as long.

        `nan` is the policy for NaNs that are received.
        """
        fields = ffi.new("xs_record_field[]", len(self.names))
        for native, name in zip(fields, self.names, strict=True):
            dtype, offset = self._column(name)
            native.offset, native.bytes = offset, dtype.itemsize
            native.kind = _kind(self.layout, dtype)
            slot = np.dtype("f8") if dtype.kind == "f" else np.dtype("i8")
            column = slot if self.layout == "rows" else holdable_dtype(dtype)
            ffi.memmove(native.null, missing(column, 1).tobytes(), column.itemsize)
            if dtype.kind in "fc":
                native.real = column.itemsize // (2 if dtype.kind == "c" else 1)
            if not dtype.isnative and dtype.itemsize > 1:
                native.swap = dtype.itemsize // (2 if dtype.kind == "c" else 1)
        record = ffi.new("xs_record *", (self.dtype.itemsize, len(self.names), 1, fields))
        record.samples = self.interleaved
        record.nan = NANS[nan]
        return record, fields


def _kind(layout: str, dtype: np.dtype[Any]) -> int:
    return int(getattr(lib, _KINDS[dtype.kind] if layout == "rows" else "XS_PLAIN"))


def wire(kind: str, dtype: Any, channels: int, layout: str) -> Wire:
    """The layout of records of a dtype, which may be structured, or of several channels."""
    if layout not in LAYOUTS:
        known = ", ".join(map(repr, LAYOUTS))
        raise GraphError(f"{kind}: layout is {known}, not {layout!r}")
    if not isinstance(channels, int) or isinstance(channels, bool) or not 1 <= channels <= 2**20:
        raise GraphError(f"{kind}: channels is a whole number from 1 on, not {channels!r}")
    holdable_dtype(dtype)
    item: np.dtype[Any] = np.dtype(dtype)
    if item.names is not None:
        if channels > 1 or layout == "interleaved":
            raise GraphError(f"{kind}: the records of a structured dtype have no channels")
        _check_fields(kind, item)
        return Wire(item, item.names, layout)
    if channels == 1:
        return Wire(item, ("value",), "fields" if layout == "interleaved" else layout)
    frame: np.dtype[Any] = np.dtype((item, (channels,)))
    if layout == "interleaved":
        return Wire(frame, ("value",), layout, channels)
    return Wire(frame, tuple(f"ch{i}" for i in range(channels)), layout)


def _check_fields(kind: str, dtype: np.dtype[Any]) -> None:
    for name in dtype.names or ():
        if dtype[name].names is not None or dtype[name].subdtype is not None:
            raise DtypeError(f"{kind}: field {name!r} of a record is one value, not {dtype[name]}")
    if len(dtype.names or ()) > MAX_FIELDS:
        raise GraphError(f"{kind}: a record has at most {MAX_FIELDS} fields")


def wire_of(kind: str, signals: Signals, dtype: Any) -> Wire:
    """The records of a stream that is sent; `dtype`, if given, has to have its fields."""
    fields = list(zip(signals.names, signals.dtypes, strict=True))
    own: np.dtype[Any] = fields[0][1] if len(fields) == 1 else np.dtype(fields)
    layout = "rows" if signals.records else "fields"
    if signals.records and any(each.kind == "f" and each.itemsize < 4 for _, each in fields):
        raise SchemaError(f"write {kind}, port 'in': rows have no float16")
    asked = own if dtype is None else np.dtype(dtype)
    if asked.newbyteorder("=") != own and asked.names is None:
        raise SchemaError(f"write {kind}, port 'in': carries {own}, and dtype is {asked}")
    if asked.names is not None:
        wanted = [asked[name].newbyteorder("=") for name in asked.names]
        if wanted != [each for _, each in fields]:
            raise SchemaError(f"write {kind}, port 'in': carries {own}, and dtype is {asked}")
    names = asked.names or signals.names
    return Wire(asked, names, layout)


def timebase(rate_hz: float | None, start_time: float, interleaved: int = 1) -> Timebase:
    """The timebase of samples that arrive at a rate."""
    return Timebase.index() if rate_hz is None else Timebase(rate_hz * interleaved, start_time)
