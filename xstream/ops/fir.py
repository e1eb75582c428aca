"""fir: a filter with a finite impulse response, continuous across segments."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream.engine.operator import Operator
from xstream.engine.schema import Out, Schema
from xstream.errors import GraphError
from xstream.kernels.kernel import Kernel, kernel_of
from xstream.ops._kernels import filters
from xstream.ops.window_kernel import WindowKernel, float_for

__all__ = ["Fir", "checked_taps", "fir_arguments", "fir_kernel"]


@dataclass(frozen=True)
class Fir(WindowKernel):
    """y[i] = sum of taps[k] * x[i - k], with zeros before the stream begins.

    Sums are computed in float64. A gap between segments is an error.
    """

    kind = "fir"
    how = "iterate"
    taps: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "taps", checked_taps(self, self.taps))

    @property
    def label(self) -> str:
        return f"fir({len(self.taps)} taps)"

    def kernel_for(self, inputs: Schema) -> Kernel:
        return fir_kernel(len(self.taps), 1, float_for(self, inputs))

    def kernel_arguments(self, inputs: Schema) -> tuple[Any, ...]:
        return fir_arguments(self.taps, 1, float_for(self, inputs))


def checked_taps(operator: Operator, taps: Sequence[float]) -> tuple[float, ...]:
    """Return the taps as floats; raise a GraphError if they are not finite numbers."""
    try:
        array = np.asarray(taps)
        if array.dtype.kind not in "biuf" or array.ndim != 1 or not len(array):
            raise ValueError(taps)
        floats: tuple[float, ...] = tuple(array.astype(np.float64).tolist())
        if not all(map(math.isfinite, floats)):
            raise ValueError(taps)
    except (TypeError, ValueError, OverflowError):
        raise GraphError(
            f"{operator.kind}: taps must be one or more finite numbers, not {reprlib.repr(taps)}"
        ) from None
    return floats


def fir_arguments(
    taps: Sequence[float], factor: int, dtype: np.dtype[Any]
) -> tuple[npt.NDArray[Any], int, npt.NDArray[Any]]:
    """Return the arguments of the kernel: reversed taps, decimation factor, type of the output."""
    return np.asarray(taps, np.float64)[::-1].copy(), factor, np.empty(0, dtype)


@lru_cache
def fir_kernel(taps: int, factor: int, dtype: np.dtype[Any]) -> Kernel:
    """Return the kernel, with state for the history that the taps need."""
    return kernel_of(
        filters.fir,
        state={"history": np.zeros(max(taps - 1, 1)), "at": np.zeros(2, np.int64)},
        out=Out(dtype, rate=Fraction(1, factor), start="given"),
        pieces=True,
    )
