"""PIPELINE: detects leaks of a water main from the echoes of its pressure transients.

detector     the parameters, as the paper's benchmark has them (section II.A, Figure 3)
_kernels     LeakDetect: is the echo too weak?
query        the query: overlapping windows, Haar wavelet, four trimpeaks, zip, LeakDetect
pressure     synthetic pressure: drift, noise, transients with echoes, some of them with leaks
outcome      compares the leaks that were found with the known ones
measure      `xstream bench pipeline`
profiled     `xstream profile pipeline`
cli          `xstream leaks`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leaks.detector import LeakDetector
    from leaks.outcome import Outcome, evaluate
    from leaks.pressure import Pressure, Transient, generate
    from leaks.query import declare, find

#: Names are loaded on first use, because `xstream --help` imports the package for its commands.
_HOMES = {
    "LeakDetector": "leaks.detector",
    "Outcome": "leaks.outcome",
    "Pressure": "leaks.pressure",
    "Transient": "leaks.pressure",
    "declare": "leaks.query",
    "evaluate": "leaks.outcome",
    "find": "leaks.query",
    "generate": "leaks.pressure",
}

__all__ = [
    "LeakDetector",
    "Outcome",
    "Pressure",
    "Transient",
    "declare",
    "evaluate",
    "find",
    "generate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
