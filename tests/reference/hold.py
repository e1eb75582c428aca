"""wait_for and delay, tuple by tuple."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any


def wait_for(
    held: Sequence[tuple[Any, ...]], other: Sequence[int], until: str, flush: bool
) -> list[tuple[Any, ...]]:
    """By the first field. Whoever waits for ever holds up all behind it."""

    def leaves(row: tuple[Any, ...]) -> bool:
        return row[0] in other if until == "equal" else any(row[0] <= value for value in other)

    return list(held) if flush else list(takewhile(leaves, held))


def delayed(times: Sequence[int], amount: int, by_time: bool) -> list[int | None]:
    """For each tuple, how many tuples have come when it leaves; None: at the end of the stream."""
    left: list[int | None] = []
    for i, time in enumerate(times):
        ready = next(
            (
                j + 1
                for j in range(i, len(times))
                if (max(times[: j + 1]) >= time + amount if by_time else j >= i + amount)
            ),
            None,
        )
        before = left[-1] if left else 0
        left.append(None if ready is None or before is None else max(ready, before))
    return left
