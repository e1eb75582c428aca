"""`select`: some fields of a tuple, by name, in any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import ffi, lib
from xstream.errors import SchemaError
from xstream.ops.native import NativePlan, checked
from xstream.ops.operator import Operator
from xstream.ops.schema import Schema

__all__ = ["Select"]


@dataclass(frozen=True)
class Select(Operator):
    """Passes on the named fields; segments by reference."""

    kind = "select"
    names: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"select({', '.join(self.names)})"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        fields = {field.name: field for field in inputs[0]}
        for name in self.names:
            if name not in fields:
                known = ", ".join(fields)
                raise SchemaError(f"{self.label}, port 'in': no field {name!r} among {known}")
        return (Schema(tuple(fields[name] for name in self.names)),)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        order = [field.name for field in inputs[0]]
        places = ffi.new("int32_t[]", [order.index(name) for name in self.names])
        return checked(lib.xs_op_select(plan.handle, places, len(self.names)))
