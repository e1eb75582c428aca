"""join: a symmetric hash join on timestamps, kept for comparison with `sync`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator
from xstream.engine.schema import Scalar, Schema
from xstream.errors import SchemaError
from xstream.ops.zip import side_by_side

__all__ = ["Join"]


@dataclass(frozen=True)
class Join(Operator):
    """Joins tuples with the same key: emits the key, then the other fields of both sides.

    All tuples are kept, as in the paper (section IV.B.4). With `unique`, a key occurs once on each
    side, and joined tuples are removed.
    """

    kind = "join"
    batches = True
    ports = ("left", "right")
    on: str | None = None
    unique: bool = False

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        left, right = (self._key(schema, port) for port, schema in enumerate(inputs))
        key, rest = inputs[0].fields[left], inputs[0].fields[:left] + inputs[0].fields[left + 1 :]
        others = inputs[1].fields[:right] + inputs[1].fields[right + 1 :]
        parts = [Schema((key, *rest)), *([Schema(others)] if others else [])]
        return (side_by_side(tuple(parts)),)

    def _key(self, schema: Schema, port: int) -> int:
        """Return the position of the key field."""
        names = [field.name for field in schema]
        position = 0 if self.on is None else names.index(self.on) if self.on in names else None
        key = None if position is None else schema.types[position]
        if position is None or not isinstance(key, Scalar) or key.slot != "int64":
            what = "first field" if self.on is None else f"field {self.on!r}"
            raise SchemaError(
                f"join, port {self.ports[port]!r}: needs a whole number as {what}, and carries "
                f"{schema}"
            )
        return position

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        left, right = (self._key(schema, port) for port, schema in enumerate(inputs))
        return checked(lib.xs_op_join(plan.handle, left, right, self.unique))
