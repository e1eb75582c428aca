"""A window that is computed part by part, as a statistic reads it.

In a region, loops over single samples in front of a window statistic do not fill an array with the
whole window. Whenever the statistic reads a part of it, they fill that part, in scratch memory that
stays in the cache.
"""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, overload_method, register_model
from numba.np.arrayobj import make_array
from numba.np.numpy_support import from_dtype

from xstream.kernels._inner import INNER
from xstream.kernels._links import block, member, readonly
from xstream.kernels.pieces import PART, PART_OUTSIDE

__all__ = ["FoldedType", "folded_maker"]

_WORD = ir.IntType(64)


class FoldedType(types.Type):
    """The type of such a window; `fill` computes the samples from a position on."""

    def __init__(self, name: str, stage: int, described: str, fill: Any) -> None:
        self.fill = fill
        self.dtype = from_dtype(np.lib.format.descr_to_dtype(literal_eval(described)))
        super().__init__(name=f"Folded({name}, {stage}, {described})")


@register_model(FoldedType)
class _FoldedModel(models.StructModel):
    def __init__(self, manager, folded):
        members = [(name, types.int64) for name in ("region", "width", "scratch")]
        super().__init__(manager, folded, members)


def folded_maker(name: str, stage: int, described: str, fill: Any) -> Any:
    """A function that makes such a window of a region's frame, its width, and scratch memory for a
    part, which the caller keeps alive."""
    folded = FoldedType(name, stage, described, fill)

    @intrinsic
    def make(typing_context, region, width, scratch):
        def codegen(context, builder, signature, arguments):
            made = cgutils.create_struct_proxy(folded)(context, builder)
            made.region, made.width, array = arguments
            view = make_array(scratch)(context, builder, array)
            made.scratch = builder.ptrtoint(view.data, _WORD)
            return made._getvalue()

        return folded(types.int64, types.int64, scratch), codegen

    return make


region_of, width_of, scratch_of = map(member, ("region", "width", "scratch"))


@overload(len)
def _len(window):
    if isinstance(window, FoldedType):
        return lambda window: width_of(window)
    return None


@overload_method(FoldedType, "part", jit_options=INNER)
def _part(window, first, n):
    fill, dtype = window.fill, window.dtype

    def part(window, first, n):
        if first < 0 or first > width_of(window) or n < 0 or n > PART:
            raise IndexError(PART_OUTSIDE)
        samples = block(scratch_of(window), min(n, width_of(window) - first), dtype)
        fill(region_of(window), first, samples)
        return readonly(samples)

    return part
