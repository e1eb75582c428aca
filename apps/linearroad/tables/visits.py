"""Bits for the segments that a vehicle has been in; records have them in `low` and `high`."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["first_visit"]


@numba.njit
def first_visit(record, seg):
    """Note that a vehicle is in a segment; returns whether it is there for the first time."""
    bit = np.int64(1) << (seg % 50)
    if seg < 50:
        new = record.low & bit == 0
        record.low |= bit
    else:
        new = record.high & bit == 0
        record.high |= bit
    return new
