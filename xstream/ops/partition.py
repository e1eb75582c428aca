"""partition: divides a stream by a key, so that its parts can be processed separately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, whole_number
from xstream.engine.schema import Scalar, Schema
from xstream.errors import SchemaError

__all__ = ["Divide"]

MOST_REPLICAS = 4096


@dataclass(frozen=True)
class Divide(Operator):
    """Passes tuples with equal keys to one of `replicas` outputs, in the order of arrival."""

    kind = "partition"
    by: str
    replicas: int

    def __post_init__(self) -> None:
        whole_number(self, "replicas", least=1, most=MOST_REPLICAS)

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        types = {field.name: field.type for field in inputs[0]}
        key = types.get(self.by)
        if not isinstance(key, Scalar) or key.slot == "float64":
            raise SchemaError(
                f"partition, port 'in': by={self.by!r} is not an integer or boolean field of "
                f"{inputs[0]}"
            )
        return inputs * self.replicas

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        place = [field.name for field in inputs[0]].index(self.by)
        return checked(lib.xs_op_partition(plan.handle, place))
