"""`Detector`: the parameters of the detector, checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xstream.errors import InputError

__all__ = ["VARIANTS", "Detector"]


@dataclass(frozen=True)
class Detector:
    """The parameters of the detector (XStream, section II.A).

    >>> detector = Detector()
    >>> detector.bins, detector.weights(48_000.0).sum()
    (17, np.float32(7.0))
    """

    #: Samples per window; its Fourier transform has window // 2 + 1 bins.
    window: int = 32
    #: Windows per segment between the operators: one, as in the paper, or a block of them.
    #: Samples at the end that do not fill a block are not examined.
    windows: int = 1
    #: The frequency band of the score.
    low_hz: float = 1_500.0
    high_hz: float = 10_500.0
    #: An event begins this many deviations above the running mean of the scores.
    sigmas: float = 7.0
    alpha: float = 0.999
    #: Windows of the start-up phase; quiet windows after which an event ends.
    startup: int = 300
    refractory: int = 40
    #: Samples that are added on both sides of an event.
    padding: int = 2400

    def __post_init__(self) -> None:
        if self.window < 2:
            raise InputError(f"window must be at least 2, not {self.window}")
        if self.windows < 1:
            raise InputError(f"a block must have at least 1 window, not {self.windows}")
        if not 0 <= self.low_hz < self.high_hz:
            raise InputError(
                f"frequencies count from {self.low_hz:g} to {self.high_hz:g} Hz, not a band"
            )

    @property
    def block(self) -> int:
        """Samples per segment between the operators."""
        return self.window * self.windows

    def in_blocks(self, samples: int) -> Detector:
        """Return the same detector with blocks of this many samples between its operators.

        It finds the same events several times faster: a block takes one call of each operator.

        >>> Detector().in_blocks(4096).windows
        128
        """
        if samples < self.window or samples % self.window:
            raise InputError(
                f"a block must hold whole windows of {self.window} samples: {samples:,} does not"
            )
        return replace(self, windows=samples // self.window)

    @property
    def bins(self) -> int:
        """Bins of the half spectrum of a window."""
        return self.window // 2 + 1

    def weights(self, rate_hz: float) -> npt.NDArray[np.float32]:
        """The weight of each bin: 1 inside the band, 0 outside."""
        centre_hz = np.arange(self.bins) * rate_hz / self.window
        inside = (centre_hz >= self.low_hz) & (centre_hz <= self.high_hz)
        if not inside.any():
            raise InputError(
                f"no bin of {rate_hz / self.window:g} Hz lies between {self.low_hz:g} and "
                f"{self.high_hz:g} Hz at {rate_hz:g} samples/s"
            )
        return inside.astype(np.float32)


#: Variants of the experiments: windows of 32 samples between the operators, as in the paper, and
#: blocks of 128 such windows.
VARIANTS = {"DETECTAUDIO": Detector(), "DETECTAUDIO-BLOCKS": Detector().in_blocks(4096)}
