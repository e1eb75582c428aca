"""decimate: reduces the rate after a low-pass filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream.engine.operator import whole_number
from xstream.engine.schema import Schema
from xstream.kernels.kernel import Kernel
from xstream.ops.fir import checked_taps, fir_arguments, fir_kernel
from xstream.ops.window_kernel import WindowKernel, float_for

__all__ = ["Decimate", "lowpass"]

#: Taps of the windowed sinc per unit of the factor.
MAX_SINC_FACTOR = 2**20
#: The largest factor.
MAX_FACTOR = 2**40


def lowpass(factor: int, half_length: int = 8) -> npt.NDArray[np.float64]:
    """Return the taps of a windowed sinc for a rate divided by `factor`.

    >>> round(float(lowpass(4).sum()), 12)
    1.0
    """
    reach = half_length * factor
    at = np.arange(-reach, reach + 1)
    taps = np.sinc(at / factor) * np.hamming(2 * reach + 1)
    normal: npt.NDArray[np.float64] = taps / taps.sum()
    return normal


@dataclass(frozen=True)
class Decimate(WindowKernel):
    """Emits the filtered samples whose index is a multiple of `factor`; computes no others.

    Sample j of the output is filtered sample j * factor of the input. Without `taps` the filter is
    a windowed sinc, `lowpass(factor)`, which delays the signal by eight samples of the output.
    """

    kind = "decimate"
    how = "iterate"
    factor: int
    taps: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.taps is None:
            whole_number(self, "factor", least=1, most=MAX_SINC_FACTOR)
        else:
            whole_number(self, "factor", least=1, most=MAX_FACTOR)
            object.__setattr__(self, "taps", checked_taps(self, self.taps))

    @property
    def label(self) -> str:
        return f"decimate({self.factor})"

    def _taps(self) -> npt.NDArray[np.float64]:
        return lowpass(self.factor) if self.taps is None else np.asarray(self.taps, np.float64)

    def kernel_for(self, inputs: Schema) -> Kernel:
        return fir_kernel(len(self._taps()), self.factor, float_for(self, inputs))

    def kernel_arguments(self, inputs: Schema) -> tuple[Any, ...]:
        return fir_arguments(self._taps().tolist(), self.factor, float_for(self, inputs))
