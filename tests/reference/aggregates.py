"""Windowed aggregates, row by row: every window is computed from all of its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Row = dict[str, Any]
Group = tuple[tuple[int, ...], list[Row]]


class TooLateError(Exception):
    """A row of a window that has been reported."""


def value_of(how: str | Callable[[list[Any]], Any], rows: list[Any]) -> Any:
    if callable(how):
        return how(rows)
    if how == "count":
        return len(rows)
    if how == "distinct":
        return len(set(rows))
    if how == "sum":
        return math.fsum(rows) if any(isinstance(x, float) for x in rows) else sum(rows)
    if how == "mean":
        return math.fsum(rows) / len(rows)
    if how == "std":
        mean = math.fsum(rows) / len(rows)
        return math.sqrt(math.fsum((x - mean) ** 2 for x in rows) / len(rows))
    return {"min": min, "max": max, "first": lambda x: x[0], "last": lambda x: x[-1]}[how](rows)


def grouped(rows: Sequence[Row], by: Sequence[str]) -> list[Group]:
    """In the order in which groups first come."""
    groups: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return list(groups.items())


def results(rows: Sequence[Row], values: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        value_of(how, [row[of] if of else row for row in rows]) for how, of in values.values()
    )


def on_close(
    rows: Sequence[Row], by: Sequence[str], values: dict[str, Any], window: int, step: int,
    lateness: int = 0, drop: bool = False, empty: bool = False,
) -> tuple[list[tuple[Any, ...]], int]:  # fmt: skip
    """What is reported, and how many rows were dropped."""
    kept: list[Row] = []
    closed: int | None = None
    dropped, reported = 0, []
    pane = math.gcd(window, step)

    def report(end: int) -> None:
        inside = [row for row in kept if end - window <= row["time"] < end]
        inside.sort(key=lambda row: row["time"] // pane)  # stable
        for key, own in grouped(inside, by):
            reported.append((end - window, end, *key, *results(own, values)))
        if empty and not inside:
            reported.append((end - window, end, *(0 for _ in values)))

    for row in rows:
        target = (row["time"] - lateness) // step * step
        if closed is None:
            closed = target
        for end in range(closed + step, target + 1, step):
            report(end)
        closed = max(closed, target)
        if row["time"] < closed:
            if not drop:
                raise TooLateError
            dropped += 1
            continue
        kept.append(row)
    last = max((row["time"] for row in kept), default=-(2**60))
    for end in range((closed or 0) + step, last + window + 1, step):
        if any(end - window <= row["time"] for row in kept):
            report(end)
    return reported, dropped


def on_change(
    rows: Sequence[Row], by: Sequence[str], values: dict[str, Any], window: int, step: int
) -> Iterator[tuple[Any, ...]]:
    """One tuple for each group whose content of the current window changes."""
    kept: list[Row] = []
    end: int | None = None
    for row in rows:
        target = (row["time"] // step + 1) * step
        while end is not None and end < target:
            gone = [old for old in kept if old["time"] < end + step - window]
            kept = [old for old in kept if old["time"] >= end + step - window]
            end += step
            for key, _ in grouped(sorted(gone, key=lambda old: old["time"]), by):
                left = [old for old in kept if tuple(old[name] for name in by) == key]
                if left:
                    yield (end - window, end, *key, *results(left, values))
        end = target
        if row["time"] < end - window:
            continue
        kept.append(row)
        key = tuple(row[name] for name in by)
        own = [old for old in kept if tuple(old[name] for name in by) == key]
        yield (end - window, end, *key, *results(own, values))


def of_rows(
    rows: Sequence[Row], by: Sequence[str], values: dict[str, Any], window: int, step: int
) -> list[tuple[Any, ...]]:
    """Windows of so many rows of each group, as they become full."""
    seen: dict[tuple[int, ...], list[Row]] = {}
    reported = []
    for row in rows:
        key = tuple(row[name] for name in by)
        own = seen.setdefault(key, [])
        own.append(row)
        start = len(own) - window
        if start >= 0 and start % step == 0:
            reported.append((start, len(own), *key, *results(own[start:], values)))
    return reported
