"""Acoustic localisation: bearings of several microphone arrays, and where they cross.

scene        arrays in a field, calls at known places, what every microphone hears
_kernels     bearing of an event at one array, position from the bearings of several
query        DETECTAUDIO at every array, bearings, position
evaluate     how far positions are from the truth
measure      `xstream bench localise`
profiled     `xstream profile localise`
cli          `xstream localise`
"""

from __future__ import annotations

from localise.evaluate import Outcome, evaluate
from localise.query import Located, declare, locate
from localise.scene import Call, Scene, generate

__all__ = ["Call", "Located", "Outcome", "Scene", "declare", "evaluate", "generate", "locate"]
