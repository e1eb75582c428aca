"""The basic operators: pass, merge, feedback, count and collect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator, same_schema
from xstream.engine.schema import Field, Scalar, Schema
from xstream.errors import SchemaError
from xstream.kernels.stage import Stage, plain_stage

__all__ = ["Collect", "Count", "Feedback", "Merge", "Ordered", "Pass"]


@dataclass(frozen=True)
class Pass(Operator):
    """Passes every tuple on: the operator of PASSCHAIN and EngineBench."""

    kind = "pass"
    relays_batches = True

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return inputs

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_pass(plan.handle))

    def stage(self, inputs: Schema) -> Stage | None:
        return plain_stage("pass", inputs) if type(self) is Pass else None


@dataclass(frozen=True)
class Merge(Pass):
    """Merges streams of one schema in the order of arrival."""

    kind = "merge"
    variadic = True

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (same_schema(self, inputs),)


@dataclass(frozen=True)
class Ordered(Operator):
    """Merges streams of one schema in the order of a field that ascends in each of them."""

    kind = "merge"
    variadic = True
    by: str = ""
    tag: str | None = None

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        common = same_schema(self, inputs)
        kinds = {field.name: getattr(field.type, "kind", None) for field in common}
        if kinds.get(self.by) != "int64":
            raise SchemaError(f"merge: by={self.by!r} is not an integer field of {common}")
        if self.tag is None:
            return (common,)
        return (Schema((Field(self.tag, Scalar("int64")), *common.fields)),)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        place = [field.name for field in inputs[0]].index(self.by)
        return checked(lib.xs_op_ordered(plan.handle, len(inputs), place, self.tag is not None))


@dataclass(frozen=True)
class Feedback(Pass):
    """The start of a cycle; its schema is declared before its input is connected."""

    kind = "feedback"
    declared: Schema | None = None

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        assert self.declared is not None
        return (self.declared,)


@dataclass(frozen=True)
class Count(Operator):
    """Counts tuples and samples."""

    kind = "count"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return ()

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_count(plan.handle))

    def stage(self, inputs: Schema) -> Stage | None:
        return None if inputs.segment_bits else plain_stage("count", inputs)


@dataclass(frozen=True)
class Collect(Operator):
    """Keeps every tuple as a result of the run."""

    kind = "collect"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return ()

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_collect(plan.handle))
