"""Operators of the library that are kernels over windows of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from xstream.engine.operator import Operator, numeric_segment
from xstream.engine.schema import Schema
from xstream.kernels.apply import KernelApply

__all__ = ["MAX_TRANSFORM", "WindowKernel", "float_for"]

#: The most samples that one window of a transform has: its weights and its spectrum fit in memory.
MAX_TRANSFORM = 2**27


class WindowKernel(KernelApply):
    """A kernel over windows of real samples, or of such as it says."""

    how = "map"
    #: The kinds of dtype that it takes.
    sample_kinds = "biuf"

    def check(self, inputs: Schema) -> None:
        numeric_segment(self, inputs, self.sample_kinds)


def float_for(operator: Operator, inputs: Schema, kinds: str = "biuf") -> np.dtype[Any]:
    """The float that a filter of such samples gives: float32 where that holds them, else float64.

    Of complex samples it is the type of their parts.
    """
    dtype = numeric_segment(operator, inputs, kinds).dtype
    if dtype.kind == "c":
        return np.dtype(f"f{dtype.itemsize // 2}")
    return np.result_type(dtype, np.float32)
