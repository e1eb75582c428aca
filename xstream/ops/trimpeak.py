"""trimpeak: the peak of each window, and the window from its peak on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from xstream.engine.operator import numeric_segment
from xstream.engine.schema import Out, Schema
from xstream.kernels.kernel import Kernel, kernel_of
from xstream.ops._kernels import detection
from xstream.ops.window_kernel import WindowKernel

__all__ = ["Trimpeak"]


@dataclass(frozen=True)
class Trimpeak(WindowKernel):
    """Emits (value, segment): the first largest sample, and the window from there on.

    With `lowest`, it takes the smallest sample. PIPELINE chains four of them. Null windows have no
    peak and emit nothing.
    """

    kind = "trimpeak"
    how = "iterate"
    lowest: bool = False

    def kernel_for(self, inputs: Schema) -> Kernel:
        return _kernel(numeric_segment(self, inputs, self.sample_kinds).dtype)


@lru_cache
def _kernel(dtype: np.dtype[Any]) -> Kernel:
    return kernel_of(detection.trimpeak, out={"value": float, "segment": Out(dtype, start="given")})
