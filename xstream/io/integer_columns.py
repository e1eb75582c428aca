"""Whole files of integers, flat or Parquet, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from xstream.errors import InputError

__all__ = ["check_ranges", "integer_columns"]


def integer_columns(path: Path, names: Sequence[str]) -> list[NDArray[np.int64]]:
    """Columns of a Parquet file, by their names in lower case, or all columns of a flat file."""
    try:
        if path.suffix == ".parquet":
            table = pq.read_table(path, partitioning=None, page_checksum_verification=True)
            table = table.rename_columns([name.lower() for name in table.column_names])
        else:
            options = pacsv.ReadOptions(column_names=list(names))
            types = pacsv.ConvertOptions(column_types={name: pa.int64() for name in names})
            table = pacsv.read_csv(path, read_options=options, convert_options=types)
        missing = [name for name in names if name not in table.column_names]
        if missing:
            raise InputError(f"{path} has no column {missing[0]!r}")
        return [_integers(path, name, table.column(name)) for name in names]
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _integers(path: Path, name: str, column: Any) -> NDArray[np.int64]:
    if column.null_count or not pa.types.is_integer(column.type):
        raise InputError(f"{path}: column {name!r} contains values that are not integers")
    values: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return values


def check_ranges(path: Path, *ranges: tuple[str, NDArray[np.int64], int, int]) -> None:
    """Refuse values outside their range: the name of a column, its values, lowest and highest."""
    for name, values, low, high in ranges:
        outside = (values < low) | (values > high)
        if outside.any():
            raise InputError(
                f"{path}: {name} must be from {low:,} to {high:,}, not {values[outside.argmax()]:,}"
            )
