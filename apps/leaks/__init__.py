"""PIPELINE: leaks of a water main, heard in the echoes of its pressure transients.

detector     the parameters, as the paper's benchmark has them (section II.A, Figure 3)
_kernels     LeakDetect: is the echo too weak?
query        the query: overlapping windows, Haar wavelet, four trimpeaks, zip, LeakDetect
pressure     synthetic pressure: drift, noise, transients with echoes, some of them with leaks
evaluate     what was found, beside what is there
measure      `xstream bench pipeline`
profiled     `xstream profile pipeline`
cli          `xstream leaks`
"""

from __future__ import annotations

from leaks.detector import LeakDetector
from leaks.evaluate import Outcome, evaluate
from leaks.pressure import Pressure, Transient, generate
from leaks.query import declare, find

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
