"""A window that is computed part by part, as a statistic reads it.

In a region, loops over single samples in front of a window statistic do not fill an array with the
whole window. Whenever the statistic reads a part of it, they fill that part, in scratch memory that
stays in the cache.
"""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic, models, overload, overload_method, register_model
from numba.np.numpy_support import from_dtype

from xstream.kernels._links import readonly
from xstream.kernels.pieces import PART_OUTSIDE

__all__ = ["FoldedType", "folded_maker"]


class FoldedType(types.Type):
    """The type of such a window; `fill` computes the samples from a position on."""

    def __init__(self, name: str, stage: int, described: str, fill: Any) -> None:
        self.fill = fill
        self.sample = np.lib.format.descr_to_dtype(literal_eval(described))
        self.scratch = types.Array(from_dtype(self.sample), 1, "C")
        super().__init__(name=f"Folded({name}, {stage}, {described})")


@register_model(FoldedType)
class _FoldedModel(models.StructModel):
    def __init__(self, manager, folded):
        members = [
            ("region", types.int64), ("width", types.int64), ("scratch", folded.scratch)
        ]  # fmt: skip
        super().__init__(manager, folded, members)


def folded_maker(name: str, stage: int, described: str, fill: Any) -> Any:
    """A function that makes such a window of a region's frame, a width and scratch memory."""
    folded = FoldedType(name, stage, described, fill)

    @intrinsic
    def make(typing_context, region, width, scratch):
        def codegen(context, builder, signature, arguments):
            made = cgutils.create_struct_proxy(folded)(context, builder)
            made.region, made.width, made.scratch = arguments
            return impl_ret_borrowed(context, builder, folded, made._getvalue())

        return folded(types.int64, types.int64, folded.scratch), codegen

    return make


def _member(name: str) -> Any:
    @intrinsic
    def read(typing_context, folded):
        kind = folded.scratch if name == "scratch" else types.int64

        def codegen(context, builder, signature, arguments):
            proxy = cgutils.create_struct_proxy(signature.args[0])
            value = getattr(proxy(context, builder, value=arguments[0]), name)
            return impl_ret_borrowed(context, builder, kind, value)

        return kind(folded), codegen

    return read


region_of, width_of, scratch_of = map(_member, ("region", "width", "scratch"))


@overload(len)
def _len(window):
    if isinstance(window, FoldedType):
        return lambda window: width_of(window)
    return None


@overload_method(FoldedType, "part")
def _part(window, first, n):
    fill, sample = window.fill, window.sample

    def part(window, first, n):
        width = width_of(window)
        if first < 0 or first > width or n < 0:
            raise IndexError(PART_OUTSIDE)
        n = min(n, width - first)
        scratch = scratch_of(window)
        if n > len(scratch):
            scratch = np.empty(n, sample)
        samples = scratch[:n]
        fill(region_of(window), first, samples)
        return readonly(samples)

    return part
