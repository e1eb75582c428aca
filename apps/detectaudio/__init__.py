"""DETECTAUDIO: detects sounds in one channel of an array and cuts them out of all channels.

detector     the parameters, as the paper and its applications use them (section II.A)
_kernels     the score of a spectrum
query        the query: events are detected in one channel, `sync` cuts all channels
recording    recordings: generated with known events, or WAV files
outcome      compares the events that were found with the known ones
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

#: Names are loaded on first use, because `xstream --help` imports the package for its commands.
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
