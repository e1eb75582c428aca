"""mean: one number for each window."""

from __future__ import annotations

from dataclasses import dataclass

from xstream.engine.schema import Schema
from xstream.kernels.kernel import Kernel
from xstream.ops._kernels import statistics as kernels
from xstream.ops.window_kernel import WindowKernel

__all__ = ["Mean"]


@dataclass(frozen=True)
class Mean(WindowKernel):
    """The mean of each window; NaN for a null one."""

    kind = "mean"

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.mean
