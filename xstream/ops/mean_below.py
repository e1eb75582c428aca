"""mean_below: windows whose mean is below a limit."""

from __future__ import annotations

from dataclasses import dataclass

from xstream.engine.operator import finite_number
from xstream.engine.schema import Schema
from xstream.kernels.kernel import Kernel
from xstream.ops._kernels import statistics as kernels
from xstream.ops.window_kernel import WindowKernel

__all__ = ["MeanBelow"]


@dataclass(frozen=True)
class MeanBelow(WindowKernel):
    """Windows whose mean is below beta: the second filter of STATFILTER."""

    kind = "mean_below"
    how = "filter"
    beta: float

    def __post_init__(self) -> None:
        finite_number(self, "beta", self.beta)

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.mean_below
