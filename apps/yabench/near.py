"""Finds bindings that are equal within the tolerance of numbers, without comparing all of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from yabench.bindings import RELATIVE_TOLERANCE, Binding, nearly_equal

__all__ = ["NearBindings"]


class NearBindings:
    """Bindings by their texts and the names of their numbers, in order of the first number.

    >>> third, other = (Binding((), (("avg", value),)) for value in (1 / 3, 0.3))
    >>> NearBindings([third, other]).equal_to(Binding((), (("avg", 0.33333333333),))) == [third]
    True
    """

    def __init__(self, bindings: Iterable[Binding]) -> None:
        self._groups: dict[Any, list[tuple[float, Binding]]] = defaultdict(list)
        for binding in sorted(set(bindings)):
            first = binding.numbers[0][1] if binding.numbers else 0.0
            self._groups[_kind(binding)].append((first, binding))

    def equal_to(self, binding: Binding) -> list[Binding]:
        """Return those that equal a binding."""
        group = self._groups.get(_kind(binding), [])
        value = binding.numbers[0][1] if binding.numbers else 0.0
        margin = 2 * RELATIVE_TOLERANCE * abs(value)
        first = bisect_left(group, value - margin, key=itemgetter(0))
        last = bisect_right(group, value + margin, key=itemgetter(0))
        return [each for _, each in group[first:last] if nearly_equal(each, binding)]


def _kind(binding: Binding) -> tuple[Any, ...]:
    return binding.texts, tuple(name for name, _ in binding.numbers)
