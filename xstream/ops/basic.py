"""The operators that every query has: pass, merge, count and collect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xstream._native import lib
from xstream.ops.native import NativePlan, checked
from xstream.ops.operator import Operator, same_schema
from xstream.ops.schema import Schema

__all__ = ["Collect", "Count", "Feedback", "Merge", "Pass"]


@dataclass(frozen=True)
class Pass(Operator):
    """Hands every tuple on: the operator of PASSCHAIN and EngineBench."""

    kind = "pass"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return inputs

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_pass(plan.handle))


@dataclass(frozen=True)
class Merge(Pass):
    """Tuples of several streams of one schema, in the order in which they come."""

    kind = "merge"
    variadic = True

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (same_schema(self, inputs),)


@dataclass(frozen=True)
class Feedback(Pass):
    """The place where a cycle comes back; its schema is declared before its input is known."""

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


@dataclass(frozen=True)
class Collect(Operator):
    """Keeps every tuple for after the run."""

    kind = "collect"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return ()

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_collect(plan.handle))
