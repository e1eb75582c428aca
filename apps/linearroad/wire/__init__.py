"""The wires of Linear Road: rows and answers as bytes on a connection (docs/linear-road-wires.md).

`flat`: lines of text in both directions. `thesis`: tuples of 36 and 20 bytes. `arrow`: Arrow IPC
streams. All of them share time marks and error lines.
"""

from __future__ import annotations

from linearroad.wire.arrow import Arrow
from linearroad.wire.flat import Flat
from linearroad.wire.format import Wire
from linearroad.wire.thesis import Thesis
from xstream.errors import InputError

__all__ = ["WIRES", "wire_named"]

WIRES: dict[str, Wire] = {"flat": Flat(), "thesis": Thesis(), "arrow": Arrow()}


def wire_named(name: str) -> Wire:
    """A wire by its name."""
    if name not in WIRES:
        raise InputError(f"--wire must be one of {', '.join(WIRES)}, not {name!r}")
    return WIRES[name]
