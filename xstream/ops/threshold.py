"""threshold: the ranges of a signal above a level."""

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
    """Emits ranges (keep, start, stop) above `level`, and with keep=False those in between.

    `absolute` compares magnitudes. Ranges do not depend on the windows; a gap in the signal ends a
    range. `gate` and `sync` take the ranges and extract the samples.
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
    pieces=True,
)
