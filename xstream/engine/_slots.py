"""Converts Python values to the slots of a tuple and checks them against a schema.

Slots are written through typed views, which are created once, by code that is generated for a
schema. A value that does not fit raises an error that names its field.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from xstream._native import ffi, lib
from xstream.engine.native import owned
from xstream.engine.schema import Scalar, Schema, Segment, shortened
from xstream.errors import SchemaError
from xstream.sigseg import MemoryManager, SigSeg
from xstream.sigseg.span import Signal

__all__ = ["Slots", "packer", "shown"]

_ref = lib.xs_seg_ref


class Slots:
    """An array of slots with views as integers, as floats and as segments."""

    __slots__ = ("floats", "integers", "segments", "slots")

    def __init__(self, slots: Any, count: int) -> None:
        self.slots = slots
        # Memory views are faster than cffi pointers.
        memory = memoryview(ffi.buffer(slots, 8 * count))
        self.integers = memory.cast("q")
        self.floats = memory.cast("d")
        self.segments = ffi.cast("xs_seg **", slots)


def _pack_source(schema: Schema) -> str:
    """A function that writes a tuple: numbers first, then segments, with a reference count each.

    Nothing can fail after the first count was taken, so a bad value leaks no count.
    """
    several = len(schema) > 1
    lines = ["def pack(value, slots, at):"]
    if several:
        lines += [
            f"    if not isinstance(value, tuple) or len(value) != {len(schema)}:",
            "        raise wrong_shape(value)",
        ]
    numbers, checked_segments, counted = [], [], []
    for i, type_ in enumerate(schema.types):
        item = f"value[{i}]" if several else "value"
        if isinstance(type_, Segment):
            checked_segments += [
                f"    v{i} = {item}",
                f"    if v{i}.__class__ is not SigSeg or v{i}._signal is not known[{i}]:",
                f"        v{i} = check({i}, v{i})",
            ]
            counted.append(f"    slots.segments[at + {i}] = ref(v{i}._handle)")
        else:
            view = "floats" if type_.slot == "float64" else "integers"
            item = f"narrow[{i}]({item})" if type_.narrow else item
            numbers.append(f"        slots.{view}[at + {i}] = {item}")
    if numbers:
        lines += ["    try:", *numbers, "    except (TypeError, ValueError, OverflowError):"]
        lines.append("        return pack(repaired(value), slots, at)")
    return "\n".join([*lines, *checked_segments, *counted])


class Checks:
    """Functions that generated code calls for values that do not have the expected type."""

    def __init__(self, manager: MemoryManager, schema: Schema, label: str) -> None:
        self.manager, self.schema, self.label = manager, schema, label
        #: For each segment field, the last signal that fitted; compared by identity.
        self.known: list[Signal | None] = [None] * len(schema)

    def wrong(self, field: int, value: Any) -> SchemaError:
        """Return the error for a value that its field cannot hold."""
        expected = self.schema.fields[field]
        hint = ""
        if isinstance(expected.type, Segment) and isinstance(value, np.ndarray | list | tuple):
            hint = ": wrap it in a SigSeg, as in xs.SigSeg(samples, start=..., timebase=...)"
        elif isinstance(expected.type, Scalar) and isinstance(value, np.ndarray | SigSeg):
            hint = ": declare what the function returns with out="
        return SchemaError(
            f"{self.label}: field {expected.name!r} is {expected.type}, not {shown(value)}{hint}"
        )

    def wrong_shape(self, value: Any) -> SchemaError:
        """Return the error for a value that is not a tuple of the right length."""
        fields = "1 field" if len(self.schema) == 1 else f"{len(self.schema)} fields"
        return SchemaError(f"{self.label}: a tuple of {fields} is wanted, not {shown(value)}")

    def unwrapped(self, value: Any) -> Any:
        """Accept a tuple of one value in place of the value, for streams of one field."""
        if isinstance(value, tuple):
            if len(value) != 1:
                raise self.wrong_shape(value)
            return value[0]
        return value

    def segment(self, field: int, value: Any) -> SigSeg:
        """Check a segment and return it under the run's manager."""
        type_ = self.schema.fields[field].type
        assert isinstance(type_, Segment)
        if len(self.schema) == 1:
            value = self.unwrapped(value)
        if value.__class__ is not SigSeg:
            raise self.wrong(field, value)
        if value.dtype != type_.dtype or value.timebase != type_.timebase:
            raise self.wrong(field, value)
        fitting: SigSeg = owned(value, self.manager)
        self.known[field] = fitting._signal
        return fitting

    def repaired(self, value: Any) -> Any:
        """Convert numpy's numbers to Python's; raise a SchemaError for anything else."""
        converts = {"bool": bool, "int64": int, "float64": float}
        values = list(value) if len(self.schema) > 1 else [self.unwrapped(value)]
        for i, type_ in enumerate(self.schema.types):
            if isinstance(type_, Scalar):
                plain = values[i].item() if isinstance(values[i], np.generic) else values[i]
                allowed = (bool, int, float) if type_.slot == "float64" else (bool, int)
                low, high = type_.limits if type_.slot == "int64" else (-(2**63), 2**63 - 1)
                too_large = isinstance(plain, int) and not low <= plain <= high
                if not isinstance(plain, allowed) or too_large:
                    raise self.wrong(i, values[i])
                values[i] = converts[type_.slot](plain)
        return tuple(values) if len(self.schema) > 1 else values[0]


def shown(value: Any) -> str:
    """A value for an error message; large arrays are shortened to one line."""
    text = shortened(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _narrowed(type_: Scalar) -> Callable[[Any], Any]:
    """Round to a smaller float; raise an error for integers that do not fit."""
    if type_.slot == "float64":
        return lambda value: ctypes.c_float(value).value
    low, high = type_.limits

    def fitting(value: Any) -> Any:
        if not low <= value <= high:
            raise OverflowError(value)
        return value

    return fitting


def packer(manager: MemoryManager, schema: Schema, label: str) -> Callable[..., None]:
    """`pack(value, slots, at)` for tuples of a schema."""
    checks = Checks(manager, schema, label)
    namespace: dict[str, Any] = {
        "__name__": __name__, "SigSeg": SigSeg,
        "ref": _ref, "known": checks.known, "check": checks.segment,
        "repaired": checks.repaired, "wrong_shape": checks.wrong_shape,
        "narrow": [_narrowed(type_) if isinstance(type_, Scalar) and type_.narrow else None
                   for type_ in schema.types],
    }  # fmt: skip
    exec(_pack_source(schema), namespace)
    return namespace["pack"]  # type: ignore[no-any-return]
