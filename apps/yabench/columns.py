"""Bindings as columns of numbers: how results of millions of bindings are held and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from yabench.bindings import RELATIVE_TOLERANCE, Bag, Binding, Score

__all__ = ["Columns", "Comparison", "compare"]

Column = NDArray[np.int64] | NDArray[np.float64]
#: Whole numbers below this differ by more than the tolerance, so they are equal or not.
_EXACT = 5e8
_MOST_CODES = 2**62


class Columns:
    """Bindings whose terms are all numbers, one array for each variable.

    >>> two = Columns({"sensor": np.array([7, 8]), "value": np.array([0.5, 1.0])})
    >>> len(two), two.bag().total()
    (2, 2)
    """

    def __init__(self, arrays: Mapping[str, Column]) -> None:
        self.arrays = {name: arrays[name] for name in sorted(arrays)}

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values()), ()))

    def bindings(self, rows: Sequence[int] | NDArray[np.int64] | None = None) -> list[Binding]:
        """Return bindings of all rows, or of some."""
        chosen = [a if rows is None else a[rows] for a in self.arrays.values()]
        values = zip(*((array.astype(float) + 0.0).tolist() for array in chosen), strict=True)
        names = tuple(self.arrays)
        return [Binding((), tuple(zip(names, row, strict=True))) for row in values]

    def bag(self) -> Bag:
        """Return the multiset of bindings."""
        return Bag(self.bindings())

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns | None:
        """Return the rows of several; None if they have different variables."""
        names = [tuple(part.arrays) for part in parts]
        if not parts or len(set(names)) > 1:
            return None
        return cls({n: np.concatenate([part.arrays[n] for part in parts]) for n in names[0]})


class Comparison(NamedTuple):
    """The score of a window, and its first bindings that are missing and unexpected."""

    score: Score
    missing: list[Binding]
    unexpected: list[Binding]


def compare(expected: Columns, actual: Columns) -> Comparison | None:
    """Compare two multisets; None where only the general comparison can.

    It takes the whole numbers of a binding as its key, which must be unique on both sides; then
    each binding has at most one partner, whose other numbers are equal within the tolerance.
    """
    names = tuple(expected.arrays)
    if names != tuple(actual.arrays) or not len(expected) or not len(actual):
        return None
    both = [(expected.arrays[name], actual.arrays[name]) for name in names]
    keys = [pair for pair in both if all(map(_is_exact, pair))]
    codes = _codes(keys)
    if codes is None:
        return None
    right, given = codes[: len(expected)], codes[len(expected) :]
    if any(len(np.unique(side)) < len(side) for side in (right, given)):
        return None
    _, ours, theirs = np.intersect1d(right, given, assume_unique=True, return_indices=True)
    equal = np.ones(len(ours), bool)
    for one, two in both:
        if not (_is_exact(one) and _is_exact(two)):
            equal &= _close(one[ours].astype(float), two[theirs].astype(float))
    found = int(equal.sum())
    score = Score(found / len(actual), found / len(expected), len(actual), len(expected))
    missing = _first_others(len(expected), ours[equal])
    unexpected = _first_others(len(actual), theirs[equal])
    return Comparison(score, expected.bindings(missing), actual.bindings(unexpected))


def _is_exact(column: Column) -> bool:
    whole = column.dtype.kind == "i"
    return bool(whole and column.max() < _EXACT and column.min() > -_EXACT)


def _codes(keys: Sequence[tuple[Column, Column]]) -> NDArray[np.int64] | None:
    """Return one number for each row of both sides, equal where all keys are equal."""
    codes: Any = None
    size = 1
    for pair in keys:
        column = np.concatenate(pair)
        low = int(column.min())
        span = int(column.max()) - low + 1
        if size * span >= _MOST_CODES:
            distinct, codes = np.unique(codes, return_inverse=True)
            size = len(distinct)
        codes = column - low if codes is None else codes * span + (column - low)
        size *= span
        if size >= _MOST_CODES:
            return None
    return None if codes is None else np.asarray(codes, np.int64)


def _close(one: NDArray[np.float64], two: NDArray[np.float64]) -> NDArray[np.bool_]:
    largest = np.maximum(np.abs(one), np.abs(two))
    near = np.abs(one - two) <= RELATIVE_TOLERANCE * largest
    return np.asarray((one == two) | (near & np.isfinite(largest)))


def _first_others(count: int, taken: NDArray[np.int64], limit: int = 3) -> NDArray[np.int64]:
    left = np.ones(count, bool)
    left[taken] = False
    return np.flatnonzero(left)[:limit]
