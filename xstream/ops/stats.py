"""stats: several statistics of each window in one pass over it."""

from __future__ import annotations

from dataclasses import dataclass

from xstream.engine.schema import Schema
from xstream.kernels.kernel import Kernel
from xstream.ops._kernels import statistics as kernels
from xstream.ops.window_kernel import WindowKernel

__all__ = ["Stats"]


@dataclass(frozen=True)
class Stats(WindowKernel):
    """Start, mean, standard deviation and energy of each window."""

    kind = "stats"
    how = "iterate"

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.stats
