"""`Timebase`: the relation of the samples of a signal and time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import SupportsFloat

from xstream.errors import TimebaseError

__all__ = ["Timebase", "simplest_fraction"]

MAX_INDEX = 2**62


@dataclass(frozen=True, slots=True)
class Timebase:
    """The rate and the origin of an evenly sampled signal (XStream, section III.A).

    Sample `i` was taken at `start_time + i / rate_hz` seconds. Timebases are equal if both numbers
    are, so two segments of one signal need not share the object.

    >>> tb = Timebase(rate_hz=100.0, start_time=5.0)
    >>> tb.time_of(250)
    7.5
    >>> tb.index_at(7.509)
    250

    `Timebase.index()` is for rows that belong together without being evenly spaced, such as the
    reports of one second: they have positions and no times.

    >>> Timebase.index().time_of(3)
    Traceback (most recent call last):
    xstream.errors.TimebaseError: an index timebase has positions and no times
    """

    rate_hz: float | None = None
    start_time: float = 0.0

    def __post_init__(self) -> None:
        if self.rate_hz is not None and not (_finite(self.rate_hz) and self.rate_hz > 0):
            raise TimebaseError(f"rate_hz must be a positive number, not {self.rate_hz!r}")
        if not _finite(self.start_time):
            raise TimebaseError(f"start_time must be finite, not {self.start_time!r}")

    @classmethod
    def index(cls) -> Timebase:
        """Return the timebase of rows that have positions and no times."""
        return _INDEX

    @property
    def is_index(self) -> bool:
        """Whether samples have positions only.

        >>> import xstream as xs
        >>> xs.Timebase.index().is_index, xs.Timebase(rate_hz=8.0).is_index
        (True, False)
        """
        return self.rate_hz is None

    @property
    def exact_rate_hz(self) -> Fraction | None:
        """The rate as a fraction: the simplest one that rounds to `rate_hz`.

        >>> Timebase(rate_hz=1000 / 3).exact_rate_hz
        Fraction(1000, 3)
        """
        return None if self.rate_hz is None else simplest_fraction(self.rate_hz)

    @property
    def exact_start_time(self) -> Fraction:
        """The start as a fraction of seconds: the simplest one that rounds to `start_time`.

        >>> import xstream as xs
        >>> xs.Timebase(rate_hz=8.0, start_time=0.1).exact_start_time
        Fraction(1, 10)
        """
        return simplest_fraction(self.start_time)

    def scaled(self, ratio: Fraction | int) -> Timebase:
        """The timebase of a signal with `ratio` times as many samples in the same time.

        >>> Timebase(rate_hz=44_100.0).scaled(Fraction(1, 147))
        Timebase(rate_hz=300.0, start_time=0.0)
        """
        rate = self.exact_rate_hz
        if rate is None or ratio == 1:
            return self
        return Timebase(float(rate * ratio), self.start_time)

    def time_of(self, index: int) -> float:
        """Return the time of sample `index`, in seconds."""
        if self.rate_hz is None:
            raise TimebaseError("an index timebase has positions and no times")
        try:
            return self.start_time + index / self.rate_hz
        except OverflowError:
            raise TimebaseError("the index is outside the indices of a signal") from None

    def index_at(self, time: float) -> int:
        """Return the index of the last sample at or before `time`.

        It is the inverse of `time_of` if adjacent samples have different times, that is, unless the
        rate exceeds the precision of a float at that time.
        """
        if self.rate_hz is None:
            raise TimebaseError("an index timebase has positions and no times")
        if not _finite(time) or not self.time_of(-MAX_INDEX) <= time < self.time_of(MAX_INDEX):
            raise TimebaseError(f"no sample is at time {time!r}")
        estimate = (time - self.start_time) * self.rate_hz
        # Rounding can make the estimate wrong, so the times decide. If a float is coarser than the
        # rate, it may be off by many samples, hence doubling steps and a bisection.
        at_or_before = after = math.floor(max(-MAX_INDEX, min(estimate, MAX_INDEX)))
        step = 1
        while self.time_of(at_or_before) > time:
            at_or_before -= step
            step *= 2
        step = 1
        while self.time_of(after) <= time:
            after += step
            step *= 2
        while after - at_or_before > 1:
            middle = (at_or_before + after) // 2
            if self.time_of(middle) <= time:
                at_or_before = middle
            else:
                after = middle
        return at_or_before

    def __str__(self) -> str:
        if self.rate_hz is None:
            return "index"
        origin = f" from {self.start_time:g} s" if self.start_time else ""
        return f"{self.rate_hz:g} Hz{origin}"


@lru_cache(maxsize=256)
def simplest_fraction(value: float | Fraction) -> Fraction:
    """The fraction with the smallest denominator that is stored as `value`.

    A rate such as 1000 / 3 is meant as that fraction and not as the nearest multiple of a power of
    two: relating streams by the latter would drift.
    """
    if isinstance(value, Fraction):
        return value
    exact = Fraction(value)
    half_step = Fraction(math.ulp(value)) / 2
    found = _between(abs(exact) - half_step, abs(exact) + half_step)
    found = -found if value < 0 else found
    return found if float(found) == value else exact


def _between(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the smallest denominator in [low, high], by continued fractions."""
    if low <= 0 <= high:
        return Fraction(0)
    whole = math.ceil(low)
    if whole <= high:
        return Fraction(whole)
    below = math.floor(low)
    return below + 1 / _between(1 / (high - below), 1 / (low - below))


def _finite(value: object) -> bool:
    """Whether a value is a real number that a float can hold."""
    try:
        return isinstance(value, SupportsFloat) and math.isfinite(value)
    except (OverflowError, TypeError, ValueError):
        return False


_INDEX = Timebase()
