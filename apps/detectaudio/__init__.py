"""DETECTAUDIO: sounds that stand out of the noise, cut out of all channels of an array.

detector     the parameters, as the paper and its applications use them (section II.A)
_kernels     the score of a spectrum
query        the query: one channel is listened to, `sync` cuts all of them
recording    recordings: generated with known events, or WAV files
outcome      what was found, beside what is there
measure      `xstream bench detectaudio`
profiled     `xstream profile detectaudio`
cli          `xstream detectaudio`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detectaudio.detector import Detector
    from detectaudio.outcome import Outcome, evaluate
    from detectaudio.query import declare, detections, find
    from detectaudio.recording import Event, Recording, generate, read_wav, write_wav

#: Names are loaded when they are first used: `xstream --help` loads the package for its commands.
_HOMES = {
    "Detector": "detectaudio.detector",
    "Event": "detectaudio.recording",
    "Outcome": "detectaudio.outcome",
    "Recording": "detectaudio.recording",
    "declare": "detectaudio.query",
    "detections": "detectaudio.query",
    "evaluate": "detectaudio.outcome",
    "find": "detectaudio.query",
    "generate": "detectaudio.recording",
    "read_wav": "detectaudio.recording",
    "write_wav": "detectaudio.recording",
}

__all__ = [
    "Detector",
    "Event",
    "Outcome",
    "Recording",
    "declare",
    "detections",
    "evaluate",
    "find",
    "generate",
    "read_wav",
    "write_wav",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
