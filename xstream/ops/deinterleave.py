"""deinterleave: splits a stream of interleaved samples into one stream per channel."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, one_segment, whole_number
from xstream.engine.schema import Field, Schema, Segment

__all__ = ["Deinterleave"]


@dataclass(frozen=True)
class Deinterleave(Operator):
    """Sample i of the stream is sample i // channels of output i % channels."""

    kind = "deinterleave"
    channels: int

    def __post_init__(self) -> None:
        whole_number(self, "channels", least=1, most=4096)

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        segment = one_segment(self, inputs[0])
        timebase = segment.timebase.scaled(Fraction(1, self.channels))
        own = Schema((Field(inputs[0].fields[0].name, Segment(segment.dtype, timebase)),))
        return (own,) * self.channels

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_deinterleave(plan.handle, self.channels))
