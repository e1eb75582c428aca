"""Operators of the library that are kernels over windows of numbers."""

from __future__ import annotations

from xstream.ops.apply import KernelApply
from xstream.ops.operator import numeric_segment
from xstream.ops.schema import Schema

__all__ = ["WindowKernel"]


class WindowKernel(KernelApply):
    """A kernel over windows of real samples, or of such as it says."""

    how = "map"
    #: The kinds of dtype that it takes.
    sample_kinds = "biuf"

    def check(self, inputs: Schema) -> None:
        numeric_segment(self, inputs, self.sample_kinds)
