"""haar: the Haar wavelet transform, in bands one octave wide."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from xstream.engine.operator import whole_number
from xstream.engine.schema import Out, Schema
from xstream.kernels.kernel import Kernel, kernel_of
from xstream.ops._kernels import spectrum
from xstream.ops.window_kernel import WindowKernel, float_for

__all__ = ["Haar"]

#: The largest level; it needs a window of 2**32 samples.
MAX_LEVEL = 32


@dataclass(frozen=True)
class Haar(WindowKernel):
    """Emits the detail coefficients at `level` of the orthonormal transform, as in PIPELINE.

    With `bands`, it emits all bands: fields detail1 to detail<level>, then approx, which together
    have the energy of the window. Each level halves the rate. The width of a window must be a
    multiple of 2**level.
    """

    kind = "haar"
    level: int
    bands: bool = False

    def __post_init__(self) -> None:
        whole_number(self, "level", least=1, most=MAX_LEVEL)

    def kernel_for(self, inputs: Schema) -> Kernel:
        return _kernel(self.level, self.bands, float_for(self, inputs))

    def kernel_arguments(self, inputs: Schema) -> tuple[Any, ...]:
        return (self.level,)


@lru_cache
def _kernel(level: int, bands: bool, dtype: np.dtype[Any]) -> Kernel:
    if not bands:
        return kernel_of(spectrum.haar_detail, out=Out(dtype, rate=Fraction(1, 2**level)))
    out = {f"detail{k}": Out(dtype, rate=Fraction(1, 2**k)) for k in range(1, level + 1)}
    return kernel_of(
        spectrum.haar_bands, out={**out, "approx": Out(dtype, rate=Fraction(1, 2**level))}
    )
