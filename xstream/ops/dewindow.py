"""dewindow: joins overlapping windows to a continuous signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, one_segment
from xstream.engine.schema import Schema

__all__ = ["Dewindow"]


@dataclass(frozen=True)
class Dewindow(Operator):
    """Emits the new samples of each window, without the overlap with earlier windows."""

    kind = "dewindow"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        one_segment(self, inputs[0])
        return inputs

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_dewindow(plan.handle))
