"""The policies for NaNs in the input: `nan="keep"`, `"error"` and `"zero"`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream._native import lib
from xstream.errors import GraphError, InputError
from xstream.io.feed import Block

__all__ = ["NANS", "by_policy", "check_policy"]

#: The policies, and what they are called in the core.
NANS = {"keep": lib.XS_NAN_KEEP, "error": lib.XS_NAN_ERROR, "zero": lib.XS_NAN_ZERO}


def check_policy(kind: str, nan: str) -> None:
    """Raise a GraphError if there is no such policy."""
    if nan not in NANS:
        known = ", ".join(map(repr, NANS))
        raise GraphError(f"{kind}: nan is {known}, not {nan!r}")


def by_policy(
    block: Block, nan: str, where: str, row: int, row_samples: int = 1
) -> Iterator[Block]:
    """The block; with "error" only the rows before a NaN, and an InputError.

    `where` is what the input is called, `row` is the number of the first row.
    """
    if nan == "error":
        yield from _until_nan(block, where, row, row_samples)
    elif len(block[0]):
        yield block if nan == "keep" else list(map(_nan_to_zero, block))


def _until_nan(block: Block, where: str, row: int, row_samples: int) -> Iterator[Block]:
    numbers = [column for column in block if column.dtype.kind in "fc"]
    found = [int(np.isnan(column).argmax()) for column in numbers if np.isnan(column).any()]
    rows = min(found) // row_samples if found else len(block[0])
    if rows:
        yield [column[: rows * row_samples] for column in block] if found else block
    if found:
        raise InputError(f"{where}: sample {row + rows} is not a number")


def _nan_to_zero(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    missing = np.isnan(column) if column.dtype.kind in "fc" else None
    if missing is None or not missing.any():
        return column
    return np.where(missing, column.dtype.type(0), column)
