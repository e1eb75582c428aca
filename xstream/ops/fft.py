"""fft: spectra of windows; all windows of a segment in one call of the library."""

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
from xstream.ops.window_kernel import MAX_TRANSFORM, WindowKernel, float_for

__all__ = ["Fft"]


@dataclass(frozen=True)
class Fft(WindowKernel):
    """The spectrum of every `size` samples.

    For real samples it is the half spectrum of `size // 2 + 1` bins, like `scipy.fft.rfft`; for
    complex samples it has `size` bins. Segments hold one or more whole windows; a bin is a sample
    of the output.
    """

    kind = "fft"
    sample_kinds = "biufc"
    size: int

    def __post_init__(self) -> None:
        whole_number(self, "size", least=1, most=MAX_TRANSFORM)

    def kernel_for(self, inputs: Schema) -> Kernel:
        segment = numeric_segment(self, inputs, self.sample_kinds)
        if segment.dtype.kind == "c":
            return full_spectrum(segment.dtype)
        return _half_spectrum(self.size, segment.dtype, float_for(self, inputs))

    def kernel_arguments(self, inputs: Schema) -> tuple[Any, ...]:
        dtype = numeric_segment(self, inputs, self.sample_kinds).dtype
        if dtype.kind == "c":
            return (self.size, True)
        real = float_for(self, inputs)
        return (self.size,) if dtype == real else (self.size, np.empty(0, real))


@lru_cache
def full_spectrum(dtype: np.dtype[Any]) -> Kernel:
    """Return the kernel of complex transforms, forward or inverse."""
    return kernel_of(spectrum.cfft, out=Out(dtype))


@lru_cache
def _half_spectrum(size: int, dtype: np.dtype[Any], real: np.dtype[Any]) -> Kernel:
    out = Out(np.result_type(real, np.complex64), rate=Fraction(size // 2 + 1, size))
    return kernel_of(spectrum.rfft if dtype == real else spectrum.rfft_converted, out=out)
