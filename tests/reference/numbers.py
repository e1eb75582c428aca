"""Operators that compute, sample by sample, in Python's own arithmetic or numpy's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Range = tuple[bool, int, int]


def mean(window: Sequence[float]) -> float:
    return math.fsum(window) / len(window) if len(window) else math.nan


def std(window: Sequence[float]) -> float:
    if not len(window):
        return math.nan
    centre = mean(window)
    return math.sqrt(math.fsum((x - centre) ** 2 for x in window) / len(window))


def energy(window: Sequence[float]) -> float:
    return math.fsum(x * x for x in window)


def hanning(window: Array, size: int) -> Array:
    weights = [
        0.5 - 0.5 * math.cos(2 * math.pi * i / (size - 1)) if size > 1 else 1.0 for i in range(size)
    ]
    return np.array([x * weights[i % size] for i, x in enumerate(window.tolist())])


def dft(window: Array, sign: int = -1) -> Array:
    """The definition, O(n**2)."""
    n = len(window)
    i = np.arange(n)
    return np.asarray(np.exp(sign * 2j * np.pi * np.outer(i, i) / n) @ window)


def haar(window: Array, level: int) -> list[Array]:
    """detail1 to detail<level>, then what is left, by the orthonormal matrix of each step."""
    bands, rest = [], window.astype(np.float64)
    for _ in range(level):
        pairs = rest.reshape(-1, 2)
        bands.append((pairs[:, 0] - pairs[:, 1]) / math.sqrt(2))
        rest = (pairs[:, 0] + pairs[:, 1]) / math.sqrt(2)
    return [*bands, rest]


def fir(samples: Array, taps: Sequence[float]) -> Array:
    """y[i] = sum of taps[k] * x[i - k]."""
    x = [float(value) for value in samples]
    return np.array(
        [math.fsum(tap * x[i - k] for k, tap in enumerate(taps) if i >= k) for i in range(len(x))]
    )


def above(samples: Array, start: int, level: float, absolute: bool) -> list[tuple[int, int]]:
    """Maximal ranges of samples above the level."""
    ranges: list[tuple[int, int]] = []
    for i, x in enumerate(samples.tolist()):
        if not (abs(x) if absolute else x) > level:
            continue
        if ranges and ranges[-1][1] == start + i:
            ranges[-1] = (ranges[-1][0], start + i + 1)
        else:
            ranges.append((start + i, start + i + 1))
    return ranges


def cfar(
    scores: Sequence[float], first: int, sigmas: float, alpha: float, startup: int,
    refractory: int, padding: int, step: int, longest: int,
) -> list[tuple[int, int]]:  # fmt: skip
    """The ranges of the events."""
    events: list[tuple[int, int]] = []
    mean_, variance, seen = 0.0, 0.0, 0
    began = last = None
    for number, score in enumerate(scores, first):
        over = score > mean_ + sigmas * math.sqrt(variance)
        if began is None:
            if over and seen >= startup:
                began = last = number
                continue
            seen += 1
            gain = max(1 - alpha, 1 / seen)
            delta = score - mean_
            mean_ += gain * delta
            variance = (1 - gain) * (variance + gain * delta * delta)
            continue
        if over:
            last = number
        assert last is not None
        stale = number - began >= longest
        if stale:
            seen, variance = 0, 0.0
        if stale or number - last >= refractory:
            events.append((began * step - padding, (last + 1) * step + padding))
            began = None
    if began is not None and last is not None:
        stop = min((last + 1) * step + padding, (first + len(scores)) * step)
        events.append((began * step - padding, stop))
    return [(max(start, first * step), stop) for start, stop in events]
