"""hanning: multiplies windows by the Hann window, which reduces spectral leakage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from xstream.engine.operator import whole_number
from xstream.engine.schema import Out, Schema
from xstream.kernels.kernel import Kernel, kernel_of
from xstream.ops._kernels import spectrum
from xstream.ops.window_kernel import MAX_TRANSFORM, WindowKernel, float_for

__all__ = ["Hanning"]


@dataclass(frozen=True)
class Hanning(WindowKernel):
    """Every `size` samples times the Hann window of that size, symmetric like `np.hanning`.

    Segments hold one or more whole windows. Floats keep their type; integers become a float that
    can represent them.
    """

    kind = "hanning"
    size: int

    def __post_init__(self) -> None:
        whole_number(self, "size", least=1, most=MAX_TRANSFORM)

    def kernel_for(self, inputs: Schema) -> Kernel:
        return _kernel(float_for(self, inputs))

    def kernel_arguments(self, inputs: Schema) -> tuple[Any, ...]:
        return (np.hanning(self.size).astype(float_for(self, inputs)),)


@lru_cache
def _kernel(dtype: np.dtype[Any]) -> Kernel:
    return kernel_of(spectrum.hanning, out=Out(dtype))
