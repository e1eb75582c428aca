"""select: some fields of every tuple."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import ffi, lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator
from xstream.engine.schema import Schema
from xstream.errors import SchemaError
from xstream.kernels.stage import Stage, plain_stage

__all__ = ["Select"]


@dataclass(frozen=True)
class Select(Operator):
    """Some fields of every tuple, in the order in which they are named."""

    kind = "select"
    names: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"select({', '.join(self.names)})"

    def __post_init__(self) -> None:
        for name in self.names:
            if not isinstance(name, str):
                raise SchemaError(f"select: a field name must be a string, not {name!r}")

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        fields = inputs[0].fields
        return (Schema(tuple(fields[i] for i in self._positions(inputs[0]))),)

    def _positions(self, schema: Schema) -> list[int]:
        present = [field.name for field in schema]
        for name in self.names:
            if name not in present:
                raise SchemaError(
                    f"{self.label}, port 'in': there is no field {name!r} among "
                    f"{', '.join(present)}"
                )
        return [present.index(name) for name in self.names]

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        positions = ffi.new("int32_t[]", self._positions(inputs[0]))
        return checked(lib.xs_op_select(plan.handle, len(positions), positions))

    def stage(self, inputs: Schema) -> Stage:
        return plain_stage("select", inputs, tuple(self._positions(inputs)))
