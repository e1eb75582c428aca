"""Signals at different rates, related by the times of their samples.

A signal is (rate, time of index 0, index of its first sample, samples). Rates and times are
fractions, and every sample's own time decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Placed = tuple[int, npt.NDArray[Any]]


class Signal(NamedTuple):
    """Samples that were taken at `zero + index / rate`."""

    rate: Fraction
    zero: Fraction
    start: int
    samples: npt.NDArray[Any]

    def time_of(self, index: int) -> Fraction:
        return self.zero + index / self.rate

    @property
    def stop(self) -> int:
        return self.start + len(self.samples)

    def within(self, low: Fraction, high: Fraction) -> list[int]:
        """The indices of the samples in a half-open stretch of time."""
        return [i for i in range(self.start, self.stop) if low <= self.time_of(i) < high]

    def covers(self, high: Fraction) -> bool:
        """Whether no sample before `high` is still to come."""
        return self.time_of(self.stop) >= high

    def begins_by(self, low: Fraction) -> bool:
        """Whether no sample from `low` on lies before the first one."""
        return self.time_of(self.start - 1) < low


def gate(control: Signal, ranges: Sequence[tuple[int, int]], signal: Signal) -> list[int]:
    """The indices that pass: those in the time of any range."""
    passed: set[int] = set()
    for start, stop in ranges:
        passed |= set(signal.within(control.time_of(start), control.time_of(stop)))
    return sorted(passed)


def sync(
    control: Signal, ranges: Sequence[tuple[int, int]], signals: Sequence[Signal]
) -> list[tuple[list[int], ...]]:
    served = []
    for start, stop in ranges:
        low, high = control.time_of(start), control.time_of(stop)
        if not all(signal.covers(high) for signal in signals):
            break
        served.append(tuple(signal.within(low, high) for signal in signals))
    return served


def zipped(
    first: Signal, windows: Sequence[tuple[int, int]], others: Sequence[Signal]
) -> list[tuple[list[int], ...]]:
    """Windows of the first signal with the samples of the others at the same time."""
    pairs = []
    for start, stop in windows:
        low, high = first.time_of(start), first.time_of(stop)
        if not all(len(other.samples) and other.covers(high) for other in others):
            break
        if all(other.begins_by(low) for other in others):
            cut = tuple(other.within(low, high) for other in others)
            pairs.append((list(range(start, stop)), *cut))
    return pairs


def placed(signal: Signal, indices: list[int]) -> npt.NDArray[Any]:
    return signal.samples[np.array(indices, np.int64) - signal.start]
