"""`Operator`: what one node of a query is, as frozen data.

An operator says how many inputs it takes, what comes out for what goes in, and how to make it in
the core. State belongs to a run, never to the declaration, so a query can run any number of times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xstream.errors import SchemaError
from xstream.ops.native import NativePlan
from xstream.ops.schema import Schema, Segment

__all__ = ["Operator", "one_segment", "same_schema"]


@dataclass(frozen=True)
class Operator:
    """The base of all operators, sources and sinks."""

    #: What it is called in plans, errors and statistics.
    kind: ClassVar[str] = "operator"
    #: Names of the input ports; the last one repeats where `variadic`.
    ports: ClassVar[tuple[str, ...]] = ("in",)
    variadic: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """The name that tells two operators of a kind apart."""
        return self.kind

    def port_name(self, port: int) -> str:
        """What input `port` is called."""
        return self.ports[port] if port < len(self.ports) else f"{self.ports[-1]}{port}"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        """The schemas of the output ports, or a SchemaError that says what does not fit."""
        raise NotImplementedError

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        """Add the operator to a plan of the core and return its handle."""
        raise NotImplementedError


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
    """The one schema of all inputs, or a SchemaError that names the port that differs."""
    for port, schema in enumerate(inputs):
        if schema.types != inputs[0].types:
            raise SchemaError(
                f"{operator.label}, port {operator.port_name(port)!r}: carries {schema}, and port "
                f"{operator.port_name(0)!r} carries {inputs[0]}"
            )
    return inputs[0]
