"""`Detector`: the parameters of the detector, checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xstream.errors import InputError

__all__ = ["VARIANTS", "Detector"]


@dataclass(frozen=True)
class Detector:
    """How the channel that is listened to is judged (XStream, section II.A).

    >>> detector = Detector()
    >>> detector.bins, detector.weights(48_000.0).sum()
    (17, np.float32(7.0))
    """

    #: Samples of a window; its Fourier transform has window // 2 + 1 bins.
    window: int = 32
    #: Windows in one segment between the operators: one, as in the paper, or a block of them.
    #: Samples at the end that do not fill a block are not examined.
    windows: int = 1
    #: The frequencies that count for the score.
    low_hz: float = 1_500.0
    high_hz: float = 10_500.0
    #: An event begins so many deviations above the running mean of the scores.
    sigmas: float = 7.0
    alpha: float = 0.999
    #: Windows that are only learnt from at first; windows without a loud one that end an event.
    startup: int = 300
    refractory: int = 40
    #: Samples that are kept on either side of an event.
    padding: int = 2400

    def __post_init__(self) -> None:
        if self.window < 2:
            raise InputError(f"a window of the detector has at least 2 samples, not {self.window}")
        if self.windows < 1:
            raise InputError(f"a block of the detector has at least 1 window, not {self.windows}")
        if not 0 <= self.low_hz < self.high_hz:
            raise InputError(
                f"frequencies count from {self.low_hz:g} to {self.high_hz:g} Hz: that is no band"
            )

    @property
    def block(self) -> int:
        """Samples of a segment between the operators."""
        return self.window * self.windows

    def in_blocks(self, samples: int) -> Detector:
        """The same detector with blocks of so many samples between its operators.

        It finds the same events several times as fast: a block costs one call of each operator.

        >>> Detector().in_blocks(4096).windows
        128
        """
        if samples < self.window or samples % self.window:
            raise InputError(
                f"a block holds whole windows of {self.window} samples: {samples:,} does not"
            )
        return replace(self, windows=samples // self.window)

    @property
    def bins(self) -> int:
        """Bins of a window's half spectrum."""
        return self.window // 2 + 1

    def weights(self, rate_hz: float) -> npt.NDArray[np.float32]:
        """One for each bin of the band, else zero."""
        centre_hz = np.arange(self.bins) * rate_hz / self.window
        inside = (centre_hz >= self.low_hz) & (centre_hz <= self.high_hz)
        if not inside.any():
            raise InputError(
                f"no bin of {rate_hz / self.window:g} Hz lies between {self.low_hz:g} and "
                f"{self.high_hz:g} Hz at {rate_hz:g} samples/s"
            )
        return inside.astype(np.float32)


#: What the experiments compare: windows of 32 samples between the operators, as in the paper, and
#: blocks of 128 such windows.
VARIANTS = {"DETECTAUDIO": Detector(), "DETECTAUDIO-BLOCKS": Detector().in_blocks(4096)}
