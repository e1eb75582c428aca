"""gate: the samples of a stream that lie inside time ranges, without appending anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, one_segment
from xstream.engine.schema import Scalar, Schema
from xstream.errors import SchemaError

__all__ = ["Gate", "check_control"]


def check_control(operator: Operator, control: Schema, flag_needed: bool) -> bool:
    """Whether control tuples are (keep, start, stop); a SchemaError where they are no ranges."""
    kinds = [type_.slot if isinstance(type_, Scalar) else "segment" for type_ in control.types]
    if len(kinds) == 3 and kinds[0] in ("bool", "int64") and kinds[1:] == ["int64", "int64"]:
        return True
    if kinds == ["int64", "int64"] and not flag_needed:
        return False
    wanted = "(keep, start, stop)" if flag_needed else "(keep, start, stop) or (start, stop)"
    raise SchemaError(
        f"{operator.label}, port {operator.port_name(0)!r}: needs ranges {wanted} of whole "
        f"numbers, not {control}"
    )


@dataclass(frozen=True)
class Gate(Operator):
    """Passes what lies inside the ranges of a control stream and drops the rest.

    Ranges come in order of their start. What lies before a range and in none is dropped as soon as
    that range comes; a range with keep=False drops what lies inside it, which bounds the memory in
    long silences. Each sample is decided once: the first range that covers it counts.
    """

    kind = "gate"
    ports = ("control", "in")

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        check_control(self, inputs[0], flag_needed=False)
        one_segment(self, inputs[1], 1)
        return (inputs[1],)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        flagged = check_control(self, inputs[0], flag_needed=False)
        return checked(lib.xs_op_gate(plan.handle, flagged))
