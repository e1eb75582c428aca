"""shed: drops tuples under overload by a policy and counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, whole_number
from xstream.engine.schema import Schema
from xstream.errors import GraphError
from xstream.ops.hold import whole_field

__all__ = ["POLICIES", "Shed"]

POLICIES = {
    "oldest": lib.XS_SHED_OLDEST, "newest": lib.XS_SHED_NEWEST, "random": lib.XS_SHED_RANDOM,
    "key": lib.XS_SHED_KEY,
}  # fmt: skip


@dataclass(frozen=True)
class Shed(Operator):
    """Passes tuples on, and drops some while more than `limit` wait in its queue.

    With `time` the limit is how far the tuple at the front of the queue is behind the last one, in
    units of that field.
    """

    kind = "shed"
    limit: int
    drop: str = "oldest"
    time: str | None = None
    by: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        whole_number(self, "limit", least=1)
        whole_number(self, "seed")
        if self.drop not in POLICIES:
            raise GraphError(f"shed: drop is one of {', '.join(POLICIES)}, not {self.drop!r}")
        if (self.drop == "key") != (self.by is not None):
            raise GraphError("shed: drop='key' goes with by=, the field of the key")

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self._fields(inputs[0])
        return inputs

    def _fields(self, schema: Schema) -> tuple[int, int]:
        time = -1 if self.time is None else whole_field(self, schema, self.time)
        return time, 0 if self.by is None else whole_field(self, schema, self.by)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        time, key = self._fields(inputs[0])
        policy = POLICIES[self.drop]
        return checked(lib.xs_op_shed(plan.handle, self.limit, time, policy, key, self.seed))
