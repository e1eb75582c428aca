"""Single items of a file that can only be read from its beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

__all__ = ["Rereader"]

T = TypeVar("T")


class Rereader(Generic[T]):
    """Items of a file that are read again, from the beginning, by their number.

    With several threads, rows are rejected long after they were read. Numbers ascend but for a few
    streams of them, so each of these reads the file once.

    >>> lines = Rereader(lambda: iter(["a", "b", "c"]))
    >>> lines.item(2), lines.item(0), lines.item(2)
    ('c', 'a', 'c')
    """

    READINGS = 4

    def __init__(self, read: Callable[[], Iterator[T]]) -> None:
        self._read = read
        self._readings: list[tuple[int, T | None, Iterator[T]]] = []

    def item(self, number: int) -> T:
        """Item `number` of the file, counted from 0."""
        behind = [one for one in self._readings if one[0] <= number]
        at, last, items = max(behind, key=lambda one: one[0], default=(-1, None, self._read()))
        self._readings = [one for one in self._readings if one[2] is not items]
        if at < number:
            last = next(islice(items, number - at - 1, None))
        self._readings = [(number, last, items), *self._readings[: self.READINGS - 1]]
        assert last is not None
        return last
