"""std: the standard deviation of each window."""

from __future__ import annotations

from dataclasses import dataclass

from xstream.engine.schema import Schema
from xstream.kernels.kernel import Kernel
from xstream.ops._kernels import statistics as kernels
from xstream.ops.window_kernel import WindowKernel

__all__ = ["Std"]


@dataclass(frozen=True)
class Std(WindowKernel):
    """The standard deviation (of the population) of each window; NaN for a null one."""

    kind = "std"

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.std
