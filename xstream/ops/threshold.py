"""threshold: the stretches of a signal above a level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xstream.engine.operator import finite_number
from xstream.engine.schema import Schema
from xstream.kernels.kernel import Kernel, kernel_of
from xstream.ops._kernels import detection
from xstream.ops.window_kernel import RangeKernel

__all__ = ["Threshold"]


@dataclass(frozen=True)
class Threshold(RangeKernel):
    """(keep, start, stop): stretches above `level`, and with keep=False what lies between.

    `absolute` looks at magnitudes. The windows that a stretch is cut into make no difference; a
    break in the signal ends it. `gate` and `sync` take the ranges and extract the samples.
    """

    kind = "threshold"
    level: float
    absolute: bool = False

    def __post_init__(self) -> None:
        finite_number(self, "level", self.level)

    def kernel_for(self, inputs: Schema) -> Kernel:
        return _THRESHOLD


_THRESHOLD = kernel_of(
    detection.threshold,
    state={"at": np.zeros(3, np.int64), "flags": np.zeros(2, np.bool_)},
    out={"keep": bool, "start": int, "stop": int},
    at_end=True,
)
