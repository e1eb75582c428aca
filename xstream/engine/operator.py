"""`Operator`: the declaration of a node of a query, as immutable data.

An operator declares its inputs, the schemas of its outputs, and how it is created in the C core.
State belongs to a run, not to the declaration, so a query can run any number of times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from xstream.engine.native import NativePlan
from xstream.engine.schema import Field, Scalar, Schema, Segment, shortened
from xstream.errors import GraphError, SchemaError

__all__ = [
    "MAX_SIZE",
    "Operator",
    "finite_number",
    "numeric_segment",
    "one_segment",
    "same_schema",
    "whole_number",
]

#: The largest width, gap, step or count. Indices end at 2**62, so an index plus a few sizes fits
#: into 64 bits.
MAX_SIZE = 2**60


@dataclass(frozen=True)
class Operator:
    """The base class of all operators, sources and sinks."""

    #: Its name in plans, errors and statistics.
    kind: ClassVar[str] = "operator"
    #: Names of the input ports; the last one repeats if `variadic`.
    ports: ClassVar[tuple[str, ...]] = ("in",)
    variadic: ClassVar[bool] = False
    #: Whether it emits tuples of numbers in batches: always, or where it receives them so.
    batches: ClassVar[bool] = False
    relays_batches: ClassVar[bool] = False
    #: Whether its outputs may be left unconnected.
    outputs_optional: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """The name that distinguishes two operators of a kind."""
        return self.kind

    def port_name(self, port: int) -> str:
        """Return the name of input `port`."""
        return self.ports[port] if port < len(self.ports) else f"{self.ports[-1]}{port}"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        """Return the schemas of the output ports; raise a SchemaError if the inputs do not fit."""
        raise NotImplementedError

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        """Add the operator to a plan of the C core and return its handle."""
        raise NotImplementedError

    def create_member(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        """Add it as a member of a region, whose code stands for its own; tuples never reach it."""
        return self.create(plan, inputs, outputs)

    def stage(self, inputs: Schema) -> Any:
        """The `Stage` of the operator in a compiled region; None if it cannot be part of one."""
        return None

    def raised(self, op: Any) -> BaseException | None:
        """The exception of a user's function inside the operator, if that is why it failed."""
        return None


def one_segment(operator: Operator, schema: Schema, port: int = 0) -> Segment:
    """The segment type of a stream of segments, or a SchemaError that names the port."""
    segment = schema.only_segment
    if segment is None:
        raise SchemaError(
            f"{operator.label}, port {operator.port_name(port)!r}: needs a stream of segments, "
            f"not {schema}"
        )
    return segment


def same_schema(operator: Operator, inputs: tuple[Schema, ...]) -> Schema:
    """The common schema of all inputs; raises a SchemaError that names a port that differs.

    Indices keep their timebase if it is the same in all inputs.
    """
    for port, schema in enumerate(inputs):
        if schema.types != inputs[0].types:
            raise SchemaError(
                f"{operator.label}, port {operator.port_name(port)!r}: carries {schema}, and port "
                f"{operator.port_name(0)!r} carries {inputs[0]}"
            )
    return Schema(tuple(_common(operator, inputs, i) for i in range(len(inputs[0]))))


def _common(operator: Operator, inputs: tuple[Schema, ...], number: int) -> Field:
    """A field that has the same type in all inputs, with their common timebase."""
    first = inputs[0].fields[number]
    if not isinstance(first.type, Scalar):
        return first
    known = [getattr(schema.types[number], "timebase", None) for schema in inputs]
    for port, timebase in enumerate(known):
        if None not in (timebase, known[0]) and timebase != known[0]:
            raise SchemaError(
                f"{operator.label}, port {operator.port_name(port)!r}: indices at {timebase}, and "
                f"those of port {operator.port_name(0)!r} are at {known[0]}"
            )
    return Field(first.name, Scalar(first.type.kind, None if None in known else known[0]))


def numeric_segment(operator: Operator, schema: Schema, kinds: str, port: int = 0) -> Segment:
    """The segment type of a stream with samples of the given kinds, or a SchemaError."""
    segment = one_segment(operator, schema, port)
    if segment.dtype.kind not in kinds:
        what = "real or complex" if "c" in kinds else "real"
        raise SchemaError(
            f"{operator.label}, port {operator.port_name(port)!r}: needs {what} samples, not "
            f"{segment.dtype}"
        )
    return segment


def whole_number(
    operator: Operator, name: str, least: int = -MAX_SIZE, most: int = MAX_SIZE
) -> None:
    """Raise a GraphError unless a parameter is a whole number from `least` to `most`.

    Numpy's integers are converted to Python's, which do not overflow.
    """
    value = getattr(operator, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise GraphError(f"{operator.kind}: {name} is a whole number, not {value!r}")
    if value < least:
        raise GraphError(f"{operator.kind}: {name} is at least {least}, not {shortened(value)}")
    if value > most:
        raise GraphError(f"{operator.kind}: {name} is at most {most}, not {shortened(value)}")
    object.__setattr__(operator, name, int(value))


def finite_number(
    operator: Operator,
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
) -> None:
    """Raise a GraphError unless a parameter is a finite number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise GraphError(f"{operator.kind}: {name} is a number, not {value!r}")
    if isinstance(value, int | np.integer) and not -(2**63) <= value < 2**63:
        raise GraphError(f"{operator.kind}: {name} does not fit into 64 bits: {shortened(value)}")
    if not math.isfinite(value) or not low <= value <= high:
        between = f" from {low:g} to {high:g}" if (low, high) != (-math.inf, math.inf) else ""
        raise GraphError(f"{operator.kind}: {name} is a finite number{between}, not {value!r}")
