"""`TableFile`: the base class of csv, parquet and arrow files, which have named columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xstream.errors import GraphError, InputError, SchemaError
from xstream.io.contents import Contents
from xstream.io.feed import Block
from xstream.io.file import BLOCK_BYTES, File
from xstream.io.output import Columns, Signals
from xstream.io.quarantine import Quarantine

__all__ = ["TableFile", "arrow_batch", "arrow_schema"]

_RATE, _START = b"xstream.rate_hz", b"xstream.start_time"


@dataclass(frozen=True, eq=False)
class TableFile(File):
    """A table whose columns are signals, or whose rows are tuples."""

    #: The columns to read, in order; None reads all of them. As a sink: their names.
    columns: tuple[str, ...] | None = None
    #: As a sink of samples: whether the first column is the index of each sample.
    index: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns is not None:
            given: Any = self.columns
            names = (given,) if isinstance(given, str) else tuple(given)
            if not names or not all(isinstance(name, str) for name in names):
                raise GraphError(f"{self.kind}: columns are names, not {given!r}")
            object.__setattr__(self, "columns", names)

    @property
    def indexed(self) -> bool:
        return self.index

    # -- reading -----------------------------------------------------------------------------

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns to read, out of those of the file."""
        for name in self.columns or ():
            if name not in names:
                known = ", ".join(map(repr, names[:20]))
                raise InputError(f"{self.kind}: {self.path} has no column {name!r}: it has {known}")
        if len(set(names)) < len(names):
            raise InputError(f"{self.kind}: {self.path} has two columns of one name")
        return self.columns or tuple(names)

    def contents_of(self, schema: Any, rows: int | None) -> Contents:
        """The contents of a file with an Arrow schema."""
        names = self.chosen(schema.names)
        dtypes = tuple(self._dtype(name, schema.field(name).type) for name in names)
        metadata = schema.metadata or {}
        try:
            rate_hz = float(metadata[_RATE]) if _RATE in metadata else None
            start_time = float(metadata.get(_START, 0.0))
        except ValueError as error:
            raise InputError(f"{self.kind}: {self.path}: its rate is not a number") from error
        return Contents(names, dtypes, rate_hz, rows, start_time)

    def _dtype(self, name: str, type_: Any) -> np.dtype[Any]:
        import pyarrow as pa

        numbers = pa.types.is_integer(type_) or pa.types.is_floating(type_)
        if not numbers and not pa.types.is_boolean(type_):
            raise InputError(
                f"{self.kind}: column {name!r} of {self.path} is {type_}, not numbers: choose "
                "others with columns="
            )
        dtype: np.dtype[Any] = np.dtype(type_.to_pandas_dtype())
        return dtype

    def arrow_blocks(
        self, batches: Iterator[Any], contents: Contents, row: int, quarantine: Quarantine | None
    ) -> Iterator[Block]:
        """Record batches as blocks, starting at `row` of the file."""
        at = 0
        for batch in batches:
            if at + batch.num_rows > row:
                skipped = max(row - at, 0)
                yield from self._block(batch.slice(skipped), contents, at + skipped, quarantine)
            at += batch.num_rows

    def _block(
        self, batch: Any, contents: Contents, row: int, quarantine: Quarantine | None
    ) -> Iterator[Block]:
        bad = np.zeros(batch.num_rows, bool)
        columns = []
        for name, dtype in zip(contents.names, contents.dtypes, strict=True):
            array = batch.column(name)
            if array.null_count:
                if dtype.kind != "f":
                    bad |= self._nulls(array, name, row, quarantine)
                array = array.fill_null({"f": np.nan, "b": False}.get(dtype.kind, 0))
            columns.append(array.to_numpy(zero_copy_only=False))
        if self.layout == "rows" and bad.any():
            columns = [column[~bad] for column in columns]
        yield columns

    def _nulls(self, array: Any, name: str, row: int, quarantine: Quarantine | None) -> Any:
        missing = array.is_null().to_numpy(zero_copy_only=False)
        reason = f"column {name!r} has no value, and its type has no NaN"
        for at in np.flatnonzero(missing):
            if quarantine is None:
                raise InputError(f"{self.path}: row {row + int(at)}: {reason}")
            quarantine.put(self.path, "row", row + int(at), reason, "")
        return missing

    def batch_rows(self, contents: Contents) -> int:
        """The number of rows to request per batch: whole windows."""
        row_bytes = sum(dtype.itemsize for dtype in contents.dtypes)
        rows = max(BLOCK_BYTES // row_bytes, 1)
        return max(rows // self.window, 1) * self.window if self.window <= 8 * rows else rows

    # -- writing -----------------------------------------------------------------------------

    def named(self, signals: Signals) -> Signals:
        if self.columns is None:
            return signals
        if len(self.columns) != len(signals.names) or len(set(self.columns)) < len(self.columns):
            raise SchemaError(
                f"write {self.kind}, port 'in': {len(self.columns)} different names are needed for "
                f"{len(signals.names)} fields: columns={list(self.columns)}"
            )
        return replace(signals, names=self.columns)

    def check_signals(self, signals: Signals) -> None:
        for name, dtype in zip(signals.names, signals.dtypes, strict=True):
            if dtype.kind not in "iufb" or dtype == np.float16:
                raise SchemaError(
                    f"write {self.kind}, port 'in': field {name!r} is {dtype}, and a column holds "
                    "booleans, integers, float32 or float64"
                )
        if self.index and "index" in signals.names:
            raise SchemaError(f"write {self.kind}, port 'in': a field is called 'index' already")


def arrow_schema(signals: Signals, indexed: bool) -> Any:
    """The Arrow schema of the columns, with the sample rate in its metadata."""
    import pyarrow as pa

    fields = [
        pa.field(name, pa.from_numpy_dtype(dtype), nullable=False)
        for name, dtype in zip(signals.names, signals.dtypes, strict=True)
    ]
    if indexed and not signals.records:
        fields.insert(0, pa.field("index", pa.int64(), nullable=False))
    metadata = {}
    if signals.timebase.rate_hz is not None:
        metadata = {
            _RATE: repr(float(signals.timebase.rate_hz)).encode(),
            _START: repr(float(signals.timebase.start_time)).encode(),
        }
    return pa.schema(fields, metadata)


def arrow_batch(columns: Columns, schema: Any) -> Any:
    """Columns as a record batch."""
    import pyarrow as pa

    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)
