"""The order of datagrams, slowly: one at a time, with sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Order:
    """Delivers numbers in order; at most `reorder` wait for one that is missing."""

    reorder: int
    delivered: list[int] = field(default_factory=list)
    known: set[int] = field(default_factory=set)
    held: list[int] = field(default_factory=list)
    expected: int | None = None
    first: int = 0
    lost: int = 0
    late: int = 0
    duplicates: int = 0
    reordered: int = 0

    def put_all(self, numbers: Iterable[int]) -> Order:
        for number in numbers:
            self.put(number)
        self.flush(everything=True)
        return self

    def put(self, number: int) -> None:
        if self.expected is None:
            self.expected = self.first = number
        if number in self.known or number in self.held:
            self.duplicates += 1
        elif number < self.expected:
            self.late += 1
            self.lost -= number >= self.first
            self.known.add(number)
        elif number > self.expected and self.reorder:
            self.held.append(number)
            self.held.sort()
            self.reordered += 1
        else:
            self.deliver(number)
        self.flush()

    def flush(self, everything: bool = False) -> None:
        while self.held and (
            everything or self.held[0] == self.expected or len(self.held) >= self.reorder
        ):
            self.deliver(self.held.pop(0))

    def deliver(self, number: int) -> None:
        assert self.expected is not None
        self.lost += number - self.expected
        self.expected = number + 1
        self.known.add(number)
        self.delivered.append(number)
