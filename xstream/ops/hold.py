"""wait_for and delay: hold tuples until another stream has caught up, or for an amount."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, whole_number
from xstream.engine.schema import Scalar, Schema
from xstream.errors import GraphError, SchemaError

__all__ = ["Delay", "WaitFor", "whole_field"]


def whole_field(operator: Operator, schema: Schema, name: str, port: int = 0) -> int:
    """Return the position of an integer field; raise a SchemaError if there is none."""
    types = {field.name: field.type for field in schema}
    type_ = types.get(name)
    if not isinstance(type_, Scalar) or type_.slot == "float64":
        raise SchemaError(
            f"{operator.label}, port {operator.port_name(port)!r}: {name!r} is no field of whole "
            f"numbers in {schema}"
        )
    return list(types).index(name)


@dataclass(frozen=True)
class WaitFor(Operator):
    """Holds tuples until the other stream has reached them (Linear Road thesis, section 5.3).

    They leave in the order of arrival, so the result does not depend on which stream is ahead:
    each tuple waits for its own field, and for the tuples before it.
    """

    kind = "wait_for"
    ports = ("in", "other")
    on: str
    other_on: str | None = None
    until: str = "reached"
    flush: bool = False

    def __post_init__(self) -> None:
        if self.until not in ("reached", "equal"):
            raise GraphError(f"wait_for: until is 'reached' or 'equal', not {self.until!r}")

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self._fields(inputs)
        return (inputs[0],)

    def _fields(self, inputs: tuple[Schema, ...]) -> tuple[int, int]:
        own = whole_field(self, inputs[0], self.on)
        return own, whole_field(self, inputs[1], self.other_on or self.on, 1)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        own, other = self._fields(inputs)
        equal = self.until == "equal"
        return checked(lib.xs_op_wait_for(plan.handle, own, other, equal, self.flush))


@dataclass(frozen=True)
class Delay(Operator):
    """Emits tuples `amount` tuples later, or when the time field has advanced by `amount`."""

    kind = "delay"
    amount: int
    time: str | None = None
    stamp: bool = False

    def __post_init__(self) -> None:
        whole_number(self, "amount", least=0)
        if self.stamp and self.time is None:
            raise GraphError("delay: stamp needs the field of the time that it changes")

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self._field(inputs[0])
        return inputs

    def _field(self, schema: Schema) -> int:
        if self.time is None:
            return -1
        place = whole_field(self, schema, self.time)
        if self.stamp and getattr(schema.types[place], "kind", None) != "int64":
            raise SchemaError(f"delay, port 'in': a time that is changed is an int64, not {schema}")
        return place

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(
            lib.xs_op_delay(plan.handle, self.amount, self._field(inputs[0]), self.stamp)
        )
