"""rewindow: cuts a stream of segments of any widths into windows of one width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, one_segment, whole_number
from xstream.engine.schema import Schema
from xstream.errors import GraphError

__all__ = ["Rewindow"]


@dataclass(frozen=True)
class Rewindow(Operator):
    """Emits windows of `width` samples, one every `width + gap` samples.

    A negative gap overlaps, a positive gap skips samples. Windows start where the stream starts.
    Overlapping input is joined; a gap in the input is an error that names both ranges.
    """

    kind = "rewindow"
    width: int
    gap: int = 0
    flush: bool = False

    def __post_init__(self) -> None:
        whole_number(self, "width", least=1)
        whole_number(self, "gap")
        if self.gap <= -self.width:
            raise GraphError(
                f"{self.label}: a gap of {self.gap} with a width of {self.width} never moves on; "
                f"it is at least {1 - self.width}"
            )

    @property
    def label(self) -> str:
        gap = f", {self.gap}" if self.gap else ""
        return f"rewindow({self.width}{gap})"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        one_segment(self, inputs[0])
        return inputs

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_rewindow(plan.handle, self.width, self.gap, self.flush))
