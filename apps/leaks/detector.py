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

    #: Samples per window, and the overlap of two windows.
    window: int = 8192
    overlap: int = 500
    #: Level of the Haar wavelet: its details are 2**level samples apart.
    level: int = 4
    #: Ratio of echo and front below which there is a leak.
    ratio: float = 0.32
    #: A front has at least this many deviations of the noise; noise alone reaches 6 or 7.
    sigmas: float = 12.0

    def __post_init__(self) -> None:
        if self.window < 1 or self.window % 2**self.level:
            raise InputError(
                f"window must be a multiple of {2**self.level} samples, not {self.window}"
            )
        if not 0 <= self.overlap < self.window:
            raise InputError(f"windows of {self.window} cannot overlap by {self.overlap}")
        if self.sigmas < 0:
            raise InputError(f"the threshold of a front must be positive, not {self.sigmas:g}")
        if self.ratio <= 0:
            raise InputError(f"the ratio of a leak must be positive, not {self.ratio:g}")

    @property
    def step(self) -> int:
        """Samples from one window to the next."""
        return self.window - self.overlap

    @property
    def guard(self) -> int:
        """Fronts this close to an end of a window are left to the adjacent window."""
        return self.overlap // 2
