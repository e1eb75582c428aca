"""Operators that move samples without changing them, over signals as plain arrays.

A signal is an array and the index of its first sample; ranges are absolute indices. The results are
(start, samples) pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Placed = tuple[int, Array]


def rewindow(samples: Array, start: int, width: int, gap: int, flush: bool) -> list[Placed]:
    windows = []
    at = 0
    while at + width <= len(samples):
        windows.append((start + at, samples[at : at + width]))
        at += width + gap
    if flush and at < len(samples):
        windows.append((start + at, samples[at:]))
    return windows


def dewindow(windows: Sequence[Placed]) -> list[Placed]:
    """What each window adds."""
    added: list[Placed] = []
    end: int | None = None
    for start, samples in windows:
        fresh = 0 if end is None else max(end - start, 0)
        if fresh < len(samples):
            added.append((start + fresh, samples[fresh:]))
            end = start + len(samples)
    return added


def gate(windows: Sequence[Placed], ranges: Sequence[tuple[bool, int, int]]) -> dict[int, Any]:
    """By index: the samples that pass. The first range that covers a sample decides on it."""
    passed = {}
    for start, samples in windows:
        for i, sample in enumerate(samples):
            deciding = [keep for keep, low, high in ranges if low <= start + i < high]
            if deciding and deciding[0]:
                passed[start + i] = sample
    return passed


def sync(
    requests: Sequence[tuple[bool, int, int]], signals: Sequence[Placed]
) -> list[tuple[Placed, ...]]:
    served = []
    for keep, low, high in requests:
        if any(start + len(samples) < high for start, samples in signals):
            if keep:
                break  # and everything behind it waits as well
            continue
        if keep:
            served.append(
                tuple((low, samples[low - start : high - start]) for start, samples in signals)
            )
    return served


def join(
    left: Sequence[tuple[Any, ...]], right: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """On the first field, sorted."""
    return sorted((*a, *b[1:]) for a in left for b in right if a[0] == b[0])


def symmetric_join(
    arrivals: Sequence[tuple[int, tuple[Any, ...]]], unique: bool
) -> list[tuple[Any, ...]]:
    """On the first field, for tuples of both sides as they arrive: the newest is met first."""
    kept: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]] = ([], [])
    found = []
    for side, row in arrivals:
        met = [other for other in reversed(kept[1 - side]) if other[0] == row[0]]
        if unique and met:
            kept[1 - side].reverse()
            kept[1 - side].remove(met[0])
            kept[1 - side].reverse()
            del met[1:]
        else:
            kept[side].append(row)
        found += [(*other, *row[1:]) if side else (*row, *other[1:]) for other in met]
    return found


def deinterleave(samples: Array, start: int, channels: int) -> list[Array]:
    index = np.arange(start, start + len(samples))
    return [samples[index % channels == channel] for channel in range(channels)]
