"""std_above: windows whose standard deviation is above a limit."""

from __future__ import annotations

from dataclasses import dataclass

from xstream.engine.operator import finite_number
from xstream.engine.schema import Schema
from xstream.kernels.kernel import Kernel
from xstream.ops._kernels import statistics as kernels
from xstream.ops.window_kernel import WindowKernel

__all__ = ["StdAbove"]


@dataclass(frozen=True)
class StdAbove(WindowKernel):
    """Windows whose standard deviation is above alpha: the first filter of STATFILTER."""

    kind = "std_above"
    how = "filter"
    alpha: float

    def __post_init__(self) -> None:
        finite_number(self, "alpha", self.alpha)

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.std_above
