"""energy: the sum of the squares of each window."""

from __future__ import annotations

from dataclasses import dataclass

from xstream.engine.schema import Schema
from xstream.kernels.kernel import Kernel
from xstream.ops._kernels import statistics as kernels
from xstream.ops.window_kernel import WindowKernel

__all__ = ["Energy"]


@dataclass(frozen=True)
class Energy(WindowKernel):
    """The sum of the squares of each window."""

    kind = "energy"

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.energy
