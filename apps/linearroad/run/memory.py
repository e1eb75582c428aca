"""Checks during reading that an input with many expressways fits into memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import xstream as xs
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


@xs.compiled
def _mark(seen: NDArray[np.uint8], xways: NDArray[np.int32]) -> int:
    """Mark expressways as seen; returns the number of new ones. Equal marks count once."""
    new, mask = 0, len(seen) - 1
    for i in range(len(xways)):
        at = xways[i] & mask
        if xways[i] >= 0 and seen[at] == 0:
            seen[at] = 1
            new += 1
    return new


class ExpresswayCount:
    """Counts the expressways of an input while it is read."""

    EVERY = 1024  # new expressways after which the memory is checked

    def __init__(self) -> None:
        self._seen = np.zeros(1 << 20, np.uint8)
        self._count = self._checked = 0
        self._free = 0
        self.add(np.empty(0, np.int32))  # compiles before the run

    def add(self, xways: NDArray[np.int32]) -> None:
        """Count the expressways of more rows; raises InputError if they do not fit into memory."""
        same = xways.view()
        same.flags.writeable = False  # one type, whichever reader the rows come from
        self._count += _mark(self._seen, same)
        if self._count < self._checked + self.EVERY:
            return
        self._free = self._free or available_bytes()  # before their tables are allocated
        self._checked = self._count
        if self._count * TABLES_BYTES > self._free:
            raise too_much(self._count, self._count * TABLES_BYTES, self._free)
