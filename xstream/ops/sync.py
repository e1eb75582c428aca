"""sync: the same time ranges out of several streams, as a control stream asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, one_segment
from xstream.engine.schema import Schema
from xstream.errors import SchemaError
from xstream.ops.gate import check_control
from xstream.ops.zip import side_by_side

__all__ = ["Sync"]


@dataclass(frozen=True)
class Sync(Operator):
    """Control tuples (keep, start, stop) are served in order (XStream, section II.A).

    With keep, a tuple comes out with that range of every stream, as soon as all of them cover it;
    nothing is discarded. Without, everything before `stop` is discarded, which is what bounds
    memory. A start that has been discarded is an error that names it. At the end of the streams
    requests that still wait are dropped, or get what there is where `flush`.
    """

    kind = "sync"
    ports = ("control", "in")
    variadic = True
    flush: bool = False

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        check_control(self, inputs[0], flag_needed=True)
        segments = [one_segment(self, schema, port + 1) for port, schema in enumerate(inputs[1:])]
        for port, segment in enumerate(segments):
            if segment.timebase != segments[0].timebase:
                raise SchemaError(
                    f"{self.label}, port {self.port_name(port + 1)!r}: its samples come at "
                    f"{segment.timebase}, those of port {self.port_name(1)!r} at "
                    f"{segments[0].timebase}: a range means the same time in all of them"
                )
        return (side_by_side(inputs[1:]),)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_sync(plan.handle, len(inputs) - 1, self.flush))
