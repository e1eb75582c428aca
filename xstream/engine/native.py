"""A plan under construction: operators of the core, their ports and edges, kept alive together."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from xstream._native import ffi, lib
from xstream.engine.attachment import Attachment, Outcome
from xstream.engine.schema import Scalar, Schema, Segment
from xstream.errors import InputError, SegmentMemoryError
from xstream.sigseg import MemoryManager, SigSeg
from xstream.sigseg.segment import CONSUMED, adopt
from xstream.sigseg.span import Signal

__all__ = ["NativePlan", "debug_asked", "describe_tuple"]


def debug_asked() -> bool:
    """Return whether the environment enables debug mode: XSTREAM_DEBUG=1."""
    asked = os.environ.get("XSTREAM_DEBUG", "")
    if asked not in ("", "0", "1"):
        raise InputError(f"XSTREAM_DEBUG is 1 (on) or 0 (off), not {asked!r}")
    return asked == "1"


class NativePlan:
    """Owns a plan of the C core, which is freed together with this object.

    With `debug`, its kernels check indices and divisions; None uses the environment's setting.
    """

    def __init__(self, manager: MemoryManager, debug: bool | None = None) -> None:
        self.manager = manager
        self.debug = debug_asked() if debug is None else debug
        self.handle = ffi.gc(_checked(lib.xs_plan_new(manager._handle)), lib.xs_plan_free)
        self.kept: list[Any] = []
        #: The attachments of operators.
        self.attached: list[tuple[Any, Attachment]] = []
        #: Stops the run if that was asked for; for operators that wait for something outside.
        self.look_up: Callable[[], None] = lambda: None

    def keep(self, *values: Any) -> None:
        """Keep Python objects alive for as long as the plan may use their memory."""
        self.kept.extend(values)

    def attach(self, op: Any, attachment: Attachment) -> None:
        """Add an attachment of an operator, which starts and ends with the run."""
        self.attached.append((op, attachment))

    def attachment(self, op: Any) -> Attachment | None:
        """The attachment of an operator."""
        return next((attachment for own, attachment in self.attached if own == op), None)

    def begin(self) -> None:
        """Start the attachments."""
        for _, attachment in self.attached:
            attachment.begin()

    def end(self, outcome: Outcome) -> list[tuple[Any, BaseException]]:
        """End the attachments; return the errors by operator."""
        errors: list[tuple[Any, BaseException]] = []
        for op, attachment in self.attached:
            try:
                attachment.end("failed" if errors else outcome)
            except BaseException as error:
                errors.append((op, error))
        return errors

    def shape(self, op: Any, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]) -> None:
        """Set the schemas of an operator's ports."""
        _checked_status(lib.xs_plan_shape_in(op, len(inputs), _shapes(inputs)))
        _checked_status(lib.xs_plan_shape_out(op, len(outputs), _shapes(outputs)))

    def connect(self, source: Any, out_port: int, target: Any, in_port: int) -> None:
        """Add an edge."""
        _checked_status(lib.xs_plan_connect(source, out_port, target, in_port))

    def signals(self, schema: Schema) -> tuple[Signal | None, ...]:
        """For each segment field, the common properties of its SigSegs."""
        return tuple(
            Signal(type_.dtype, type_.timebase, self.manager)
            if isinstance(type_, Segment)
            else None
            for type_ in schema.types
        )


def owned(segment: SigSeg, manager: MemoryManager) -> SigSeg:
    """The segment under a run's manager: the same segment, or a copy."""
    if segment.manager is manager:
        return segment
    return SigSeg(segment.materialise(), segment.start, segment.timebase, manager)


def read_slots(slots: Any, schema: Schema, signals: tuple[Signal | None, ...]) -> tuple[Any, ...]:
    """The values of a tuple that remains in the core; segments get an additional count."""
    values: list[Any] = []
    for i, (type_, signal) in enumerate(zip(schema.types, signals, strict=True)):
        if signal is not None and not slots[i].seg:
            values.append(CONSUMED)  # by the operator that failed
        elif signal is not None:
            handle = lib.xs_seg_ref(slots[i].seg)
            start, width = lib.xs_seg_start(handle), lib.xs_seg_width(handle)
            values.append(adopt(handle, start, width, signal))
        elif isinstance(type_, Scalar) and type_.slot == "float64":
            values.append(slots[i].f)
        elif isinstance(type_, Scalar) and type_.slot == "bool":
            values.append(bool(slots[i].i))
        else:
            values.append(slots[i].i)
    return tuple(values)


def describe_tuple(values: tuple[Any, ...]) -> str:
    """Format a tuple for an error message."""
    return "(" + ", ".join(repr(value) for value in values) + ")"


def _shapes(schemas: tuple[Schema, ...]) -> Any:
    return ffi.new("xs_shape[]", [(len(schema), schema.segment_bits) for schema in schemas] or 1)


def checked(op: Any) -> Any:
    """Return an operator of the C core; raise an error if there was no memory for it."""
    return _checked(op)


def _checked(handle: Any) -> Any:
    if not handle:
        raise SegmentMemoryError("no memory is left for the query")
    return handle


def _checked_status(status: int) -> None:
    if status != lib.XS_OK:
        raise SegmentMemoryError("no memory is left for the query")
