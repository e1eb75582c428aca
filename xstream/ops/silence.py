"""silence: detects windows that are not silent."""

from __future__ import annotations

from dataclasses import dataclass

from xstream.engine.operator import finite_number
from xstream.engine.schema import Schema
from xstream.kernels.kernel import Kernel
from xstream.ops._kernels import statistics as kernels
from xstream.ops.window_kernel import RangeKernel

__all__ = ["Silence"]


@dataclass(frozen=True)
class Silence(RangeKernel):
    """The silence detector of SILENCEFILTER: (keep, start, stop) of each window.

    `keep` is true if the standard deviation of the window is above gamma. `gate` and `sync` take
    the ranges; those of silent windows let them free memory.
    """

    kind = "silence"
    gamma: float

    def __post_init__(self) -> None:
        finite_number(self, "gamma", self.gamma)

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.silence
