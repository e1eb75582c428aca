"""sync: cuts the same time ranges out of several streams on request of a control stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, one_segment
from xstream.engine.schema import Schema
from xstream.errors import SchemaError
from xstream.ops.gate import check_control, control_timebase
from xstream.ops.scale import Scale, native_scales, scale_between
from xstream.ops.zip import side_by_side

__all__ = ["Sync"]


@dataclass(frozen=True)
class Sync(Operator):
    """Serves control tuples (keep, start, stop) in order (XStream, section II.A).

    With keep, it emits a tuple with that range of every stream as soon as all of them cover it, and
    discards nothing. Without keep, everything before `stop` is discarded, which bounds the
    memory. A start that has been discarded is an error that names it. At the end of the streams,
    waiting requests are dropped; with `flush` they get the samples that are available.

    Ranges that know the timebase of their indices, such as those of `threshold`, mean times: of a
    stream at another rate or with another start they mean the samples at the same time (see
    `scale`). Other ranges mean indices, and then the streams have one timebase.
    """

    kind = "sync"
    ports = ("control", "in")
    variadic = True
    flush: bool = False

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        check_control(self, inputs[0], flag_needed=True)
        self._scales(inputs)
        return (side_by_side(inputs[1:]),)

    def _scales(self, inputs: tuple[Schema, ...]) -> list[Scale]:
        """Return the scales from the indices of the ranges to those of each stream."""
        control = control_timebase(self, inputs[0])
        segments = [one_segment(self, schema, port + 1) for port, schema in enumerate(inputs[1:])]
        timed = control is not None and not control.is_index
        scales = []
        for port, segment in enumerate(segments):
            where = f"{self.label}, port {self.port_name(port + 1)!r}"
            mixed = segment.timebase.is_index != segments[0].timebase.is_index
            if mixed or (segment.timebase != segments[0].timebase and not timed):
                raise SchemaError(
                    f"{where}: its samples come at {segment.timebase}, those of port "
                    f"{self.port_name(1)!r} at {segments[0].timebase}: ranges must say which "
                    "timebase their indices are of (xs.Scalar('int64', timebase)), and every "
                    "stream must have a rate"
                )
            scales.append(scale_between(where, control, segment.timebase))
        return scales

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        scales = native_scales(self._scales(inputs))
        return checked(lib.xs_op_sync(plan.handle, len(inputs) - 1, self.flush, scales))
