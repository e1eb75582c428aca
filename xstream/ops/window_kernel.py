"""Base classes of operators that are kernels over windows of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from xstream.engine.operator import Operator, numeric_segment
from xstream.engine.schema import Field, Scalar, Schema, Segment
from xstream.kernels.apply import KernelApply
from xstream.sigseg import Timebase

__all__ = ["MAX_TRANSFORM", "RangeKernel", "WindowKernel", "float_for"]

#: Largest window of a transform, so that its weights and its spectrum fit into memory.
MAX_TRANSFORM = 2**27


class WindowKernel(KernelApply):
    """A kernel over windows of samples, real ones unless declared otherwise."""

    how = "map"
    #: The accepted kinds of dtype.
    sample_kinds = "biuf"

    def check(self, inputs: Schema) -> None:
        numeric_segment(self, inputs, self.sample_kinds)


class RangeKernel(WindowKernel):
    """A kernel that emits ranges, whose indices have the timebase of the samples."""

    how = "iterate"

    def range_timebase(self, segment: Segment) -> Timebase:
        """Return the timebase of the samples."""
        return segment.timebase

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        (ranges,) = super().outputs(inputs)
        segment = inputs[0].only_segment
        if segment is None or segment.timebase.is_index:
            return (ranges,)
        index = Scalar("int64", self.range_timebase(segment))
        return (
            Schema(
                tuple(
                    Field(field.name, index) if field.name in ("start", "stop") else field
                    for field in ranges
                )
            ),
        )


def float_for(operator: Operator, inputs: Schema, kinds: str = "biuf") -> np.dtype[Any]:
    """The float type of filtered samples: float32 if it can represent them, otherwise float64.

    For complex samples it is the type of their parts.
    """
    dtype = numeric_segment(operator, inputs, kinds).dtype
    if dtype.kind == "c":
        return np.dtype(f"f{dtype.itemsize // 2}")
    return np.result_type(dtype, np.float32)
