"""union: merges streams in the order of arrival, with the number of the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, same_schema
from xstream.engine.schema import Field, Scalar, Schema
from xstream.ops.zip import side_by_side

__all__ = ["Union"]


@dataclass(frozen=True)
class Union(Operator):
    """Merges streams, with a leading field `stream` for the number of the stream."""

    kind = "union"
    variadic = True

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        tag = Schema((Field("stream", Scalar("int64")),))
        return (side_by_side((tag, same_schema(self, inputs))),)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_union(plan.handle))
