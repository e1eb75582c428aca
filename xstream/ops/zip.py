"""zip: one tuple of each stream makes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator
from xstream.engine.schema import Field, Schema

__all__ = ["Zip", "side_by_side"]


def side_by_side(schemas: tuple[Schema, ...]) -> Schema:
    """The fields of all, in order; a name that is taken gets the number of its stream.

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
    """A queue per input; emits as soon as all have a tuple, with the fields of all."""

    kind = "zip"
    variadic = True

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (side_by_side(inputs),)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_zip(plan.handle, len(inputs)))
