"""`LeakDetector`: the parameters of PIPELINE, checked."""

from __future__ import annotations

from dataclasses import dataclass

from xstream.errors import InputError

__all__ = ["LeakDetector"]


@dataclass(frozen=True)
class LeakDetector:
    """Windows, wavelet level and the ratio that means a leak (XStream, section II.A, Figure 3).

    >>> LeakDetector().step, LeakDetector().guard
    (7692, 250)
    """

    #: Samples of a window, and how many it shares with the one before.
    window: int = 8192
    overlap: int = 500
    #: Level of the Haar wavelet: its details are 2**level samples apart.
    level: int = 4
    #: The echo's swing over the front's, below which there is a leak.
    ratio: float = 0.32
    #: A front swings over at least so many deviations of the noise; noise alone, over 6 or 7.
    sigmas: float = 12.0

    def __post_init__(self) -> None:
        if self.window < 1 or self.window % 2**self.level:
            raise InputError(
                f"a window is a multiple of {2**self.level} samples, not {self.window}"
            )
        if not 0 <= self.overlap < self.window:
            raise InputError(f"windows of {self.window} cannot overlap by {self.overlap}")
        if self.sigmas < 0:
            raise InputError(f"a front stands out by a positive number, not {self.sigmas:g}")
        if self.ratio <= 0:
            raise InputError(f"the ratio of a leak is positive, not {self.ratio:g}")

    @property
    def step(self) -> int:
        """Samples from one window to the next."""
        return self.window - self.overlap

    @property
    def guard(self) -> int:
        """A front so close to either end of a window is left to its neighbour."""
        return self.overlap // 2
