"""Window statistics and the filters built on them: one number, or a verdict, for each window.

All sums are taken in float64 and around a sample of the window, so that a weak signal on a high
level comes out right (a float32 one-pass variance around 1e4 does not).
"""

from __future__ import annotations

from dataclasses import dataclass

from xstream.ops._kernels import statistics as kernels
from xstream.ops.apply import KernelApply
from xstream.ops.kernel import Kernel
from xstream.ops.operator import finite_number, numeric_segment
from xstream.ops.schema import Schema

__all__ = ["Energy", "Mean", "MeanBelow", "Silence", "Stats", "Std", "StdAbove"]


class _OfWindows(KernelApply):
    """A kernel over windows of real samples."""

    how = "map"

    def check(self, inputs: Schema) -> None:
        numeric_segment(self, inputs, "biuf")


@dataclass(frozen=True)
class Mean(_OfWindows):
    """The mean of each window; NaN for a null one."""

    kind = "mean"

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.mean


@dataclass(frozen=True)
class Std(_OfWindows):
    """The standard deviation (of the population) of each window; NaN for a null one."""

    kind = "std"

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.std


@dataclass(frozen=True)
class Energy(_OfWindows):
    """The sum of the squares of each window."""

    kind = "energy"

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.energy


@dataclass(frozen=True)
class Stats(_OfWindows):
    """Start, mean, standard deviation and energy of each window."""

    kind = "stats"
    how = "iterate"

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.stats


@dataclass(frozen=True)
class StdAbove(_OfWindows):
    """Windows whose standard deviation is above alpha: the first filter of STATFILTER."""

    kind = "std_above"
    how = "filter"
    alpha: float

    def __post_init__(self) -> None:
        finite_number(self, "alpha", self.alpha)

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.std_above


@dataclass(frozen=True)
class MeanBelow(_OfWindows):
    """Windows whose mean is below beta: the second filter of STATFILTER."""

    kind = "mean_below"
    how = "filter"
    beta: float

    def __post_init__(self) -> None:
        finite_number(self, "beta", self.beta)

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.mean_below


@dataclass(frozen=True)
class Silence(_OfWindows):
    """The silence detector of SILENCEFILTER: (keep, start, stop) of each window.

    `keep` says that the window is not silent: its standard deviation is above gamma. The ranges are
    what `gate` and `sync` take; those of silent windows let them forget.
    """

    kind = "silence"
    how = "iterate"
    gamma: float

    def __post_init__(self) -> None:
        finite_number(self, "gamma", self.gamma)

    def kernel_for(self, inputs: Schema) -> Kernel:
        return kernels.silence
