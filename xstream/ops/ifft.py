"""ifft: the inverse Fourier transform."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from xstream.engine.operator import numeric_segment, whole_number
from xstream.engine.schema import Out, Schema
from xstream.kernels.kernel import Kernel, kernel_of
from xstream.ops._kernels import spectrum
from xstream.ops.fft import full_spectrum
from xstream.ops.window_kernel import MAX_TRANSFORM, WindowKernel, float_for

__all__ = ["Ifft"]


@dataclass(frozen=True)
class Ifft(WindowKernel):
    """The inverse of `fft(size)`: `size` real samples from every half spectrum.

    With `real=False`, `size` complex samples from every full spectrum.
    """

    kind = "ifft"
    sample_kinds = "c"
    size: int
    real: bool = True

    def __post_init__(self) -> None:
        whole_number(self, "size", least=1, most=MAX_TRANSFORM)

    def kernel_for(self, inputs: Schema) -> Kernel:
        if not self.real:
            return full_spectrum(numeric_segment(self, inputs, "c").dtype)
        return _real_samples(self.size, float_for(self, inputs, "c"))

    def kernel_arguments(self, inputs: Schema) -> tuple[Any, ...]:
        return (self.size,) if self.real else (self.size, False)


@lru_cache
def _real_samples(size: int, real: np.dtype[Any]) -> Kernel:
    return kernel_of(spectrum.irfft, out=Out(real, rate=Fraction(size, size // 2 + 1)))
