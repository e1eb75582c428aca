"""Network monitoring: reconstructs packets from the corrupted copies of several receivers.

packets      synthetic receptions: correlated bit errors, losses, known packets
_kernels     align, correlate, cluster and reconstruct
query        the query over the receivers' streams
outcome      compares delivered packets with those that were sent
measure      `xstream bench netmon`, in packets per second
profiled     `xstream profile netmon`
cli          `xstream netmon`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netmon.outcome import Outcome, evaluate
    from netmon.packets import Receptions, generate
    from netmon.query import Delivered, declare, monitor

#: Names are loaded on first use, because `xstream --help` imports the package for its commands.
_HOMES = {
    "Delivered": "netmon.query",
    "Outcome": "netmon.outcome",
    "Receptions": "netmon.packets",
    "declare": "netmon.query",
    "evaluate": "netmon.outcome",
    "generate": "netmon.packets",
    "monitor": "netmon.query",
}

__all__ = [
    "Delivered",
    "Outcome",
    "Receptions",
    "declare",
    "evaluate",
    "generate",
    "monitor",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
