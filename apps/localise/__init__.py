"""Acoustic localisation from the bearings of several microphone arrays.

scene        arrays in a field, calls at known positions, the signal of every microphone
_kernels     bearing of an event at one array, position from the bearings of several
query        DETECTAUDIO at every array, bearings, position
outcome      compares positions with the known ones
measure      `xstream bench localise`
profiled     `xstream profile localise`
cli          `xstream localise`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localise.outcome import Outcome, evaluate
    from localise.query import Located, declare, locate
    from localise.scene import Call, Scene, generate

#: Names are loaded on first use, because `xstream --help` imports the package for its commands.
_HOMES = {
    "Call": "localise.scene",
    "Located": "localise.query",
    "Outcome": "localise.outcome",
    "Scene": "localise.scene",
    "declare": "localise.query",
    "evaluate": "localise.outcome",
    "generate": "localise.scene",
    "locate": "localise.query",
}

__all__ = [
    "Call",
    "Located",
    "Outcome",
    "Scene",
    "declare",
    "evaluate",
    "generate",
    "locate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
