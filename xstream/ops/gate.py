"""gate: the samples of a stream inside time ranges; segments are cut but never joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, one_segment
from xstream.engine.schema import Scalar, Schema
from xstream.errors import SchemaError
from xstream.ops.scale import Scale, native_scales, scale_between
from xstream.sigseg import Timebase

__all__ = ["Gate", "check_control", "control_timebase"]


def check_control(operator: Operator, control: Schema, flag_needed: bool) -> bool:
    """Return whether control tuples are (keep, start, stop); raise a SchemaError if not ranges."""
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


def control_timebase(operator: Operator, control: Schema) -> Timebase | None:
    """Return the timebase of the indices of ranges; None if the schema does not declare it."""
    start, stop = (getattr(type_, "timebase", None) for type_ in control.types[-2:])
    if None not in (start, stop) and start != stop:
        raise SchemaError(
            f"{operator.label}, port {operator.port_name(0)!r}: ranges start at indices at {start} "
            f"and stop at indices at {stop}"
        )
    return start or stop


@dataclass(frozen=True)
class Gate(Operator):
    """Passes the samples inside the ranges of a control stream and drops the rest.

    Ranges arrive in order of their start. Samples before a range that are in no range are dropped
    when that range arrives; a range with keep=False drops the samples inside it, which bounds the
    memory in long silences. The first range that covers a sample decides about it. Ranges of a
    signal at another rate select the samples at the same time (see `scale`).
    """

    kind = "gate"
    ports = ("control", "in")

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        check_control(self, inputs[0], flag_needed=False)
        self._scale(inputs)
        return (inputs[1],)

    def _scale(self, inputs: tuple[Schema, ...]) -> Scale:
        signal = one_segment(self, inputs[1], 1)
        return scale_between("gate, port 'in'", control_timebase(self, inputs[0]), signal.timebase)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        flagged = check_control(self, inputs[0], flag_needed=False)
        return checked(lib.xs_op_gate(plan.handle, flagged, native_scales([self._scale(inputs)])))
