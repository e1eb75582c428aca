"""Checks during reading that an input with many expressways fits into memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xstream.console.memory import available_bytes
from xstream.errors import InputError

__all__ = ["ExpresswayCount", "too_much"]

GIB = 2**30

#: Bytes per expressway of a file with many: statistics, tolls and their outputs of 200 segments,
#: with a quarter of spare room and a copy of the longest table while it grows.
TABLES_BYTES = 200 * (76 + 32 + 8) * 5 // 4 + 200 * 40


def too_much(expressways: int, needed: float, free: float, what: str = "are free") -> InputError:
    """The error for a run that does not fit into memory."""
    digits = 1 if needed - free >= 0.1 * GIB else 3  # so that the two figures differ
    return InputError(
        f"{expressways:,} expressways need about {needed / GIB:.{digits}f} GiB of memory, and "
        f"{free / GIB:.{digits}f} GiB {what}"
    )


class ExpresswayCount:
    """Counts the expressways of an input while it is read."""

    EVERY = 1024  # new expressways after which the memory is checked

    def __init__(self) -> None:
        self._seen = np.zeros(1 << 20, np.bool_)
        self._count = self._checked = 0
        self._free = 0

    def add(self, xways: NDArray[np.int32]) -> None:
        """Count the expressways of more rows; raises InputError if they do not fit into memory."""
        self._count += self._mark(xways)
        if self._count < self._checked + self.EVERY:
            return
        self._free = self._free or available_bytes()  # before their tables are allocated
        self._checked = self._count
        if self._count * TABLES_BYTES > self._free:
            raise too_much(self._count, self._count * TABLES_BYTES, self._free)

    def _mark(self, xways: NDArray[np.int32]) -> int:
        """Mark expressways as seen; returns the number of new ones. Equal marks count once."""
        if len(xways) and (xways == xways[0]).all():  # the rows of a file with one expressway
            xways = xways[:1]
        marks = xways & np.int32(len(self._seen) - 1)
        new = np.unique(marks[~self._seen[marks] & (xways >= 0)])
        self._seen[new] = True
        return len(new)
