"""`Pieces`: the samples of a segment as an uncompiled kernel with `pieces=True` sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pieces", "first_part", "is_one_part"]


class Pieces:
    """The samples of a segment, piece by piece or in parts of any size.

    In a compiled kernel with `pieces=True` a segment has the same methods.

    >>> window = Pieces([np.arange(3), np.arange(3, 5)])
    >>> len(window), [piece.tolist() for piece in window.pieces()]
    (5, [[0, 1, 2], [3, 4]])
    >>> window.part(2, 2).tolist(), window.part(4, 100).tolist()
    ([2, 3], [4])
    """

    def __init__(self, arrays: Iterable[NDArray[Any]]) -> None:
        self._arrays = list(arrays)

    def __len__(self) -> int:
        return sum(map(len, self._arrays))

    def pieces(self) -> Iterator[NDArray[Any]]:
        """The contiguous ranges in order, without a copy; none of them is empty."""
        return (array for array in self._arrays if len(array))

    def part(self, first: int, n: int) -> NDArray[Any]:
        """Up to `n` samples from position `first` on, copied only if they are in several pieces."""
        if not 0 <= first <= len(self) or n < 0:
            raise IndexError(PART_OUTSIDE)
        found, skipped = [], 0
        for array in self._arrays:
            low, high = max(first - skipped, 0), min(first + n - skipped, len(array))
            if low < high:
                found.append(array[low:high])
            skipped += len(array)
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else self._arrays[0][:0]


#: Samples of a window that the library's statistics read at once, and that are computed at once.
PART = 4096
PART_OUTSIDE = "a part of a segment begins outside of its samples"


def is_one_part(window: Pieces) -> bool:
    """Whether `first_part` is the whole window, without a copy; never, except in compiled code."""
    return False


def first_part(window: Pieces) -> NDArray[Any]:
    """The first PART samples. Compiled code reads them in place, without counting references."""
    return window.part(0, PART)
