"""zip: combines one tuple of each stream; signals at different rates are paired by time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator
from xstream.engine.schema import Field, Schema
from xstream.ops.scale import Scale, native_scales, scale_between

__all__ = ["Zip", "side_by_side"]


def side_by_side(schemas: tuple[Schema, ...]) -> Schema:
    """Return the fields of all streams in order; duplicate names get the number of the stream.

    >>> from xstream.engine.schema import schema
    >>> str(side_by_side((schema(int), schema(float))))
    '(value: int64, value1: float64)'
    """
    fields: list[Field] = []
    taken: set[str] = set()
    for port, schema in enumerate(schemas):
        for field in schema:
            name, number = field.name, port
            while name in taken:
                name, number = f"{field.name}{number}", number + 1
            taken.add(name)
            fields.append(Field(name, field.type))
    return Schema(tuple(fields))


@dataclass(frozen=True)
class Zip(Operator):
    """Keeps a queue per input and emits when all have a tuple, with the fields of all.

    Streams of segments whose timebases differ are paired by time instead: every window of the first
    stream with the samples of each other stream that lie in its time (see `scale`). Windows are in
    order of their start; one that starts before another stream does is dropped, and so is one that
    another stream does not cover at the end.
    """

    kind = "zip"
    variadic = True

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self._scales(inputs)
        return (side_by_side(inputs),)

    def _scales(self, inputs: tuple[Schema, ...]) -> list[Scale] | None:
        """Return the scales from the first signal to the others; None pairs tuple by tuple."""
        timebases = [
            schema.only_segment.timebase for schema in inputs if schema.only_segment is not None
        ]
        timed = len(timebases) == len(inputs) and not any(base.is_index for base in timebases)
        if not timed or all(base == timebases[0] for base in timebases):
            return None
        return [
            scale_between(f"zip, port {self.port_name(port)!r}", timebases[0], timebase)
            for port, timebase in enumerate(timebases[1:], start=1)
        ]

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        scales = self._scales(inputs)
        if scales is not None:
            return checked(lib.xs_op_align(plan.handle, len(scales), native_scales(scales)))
        return checked(lib.xs_op_zip(plan.handle, len(inputs)))
