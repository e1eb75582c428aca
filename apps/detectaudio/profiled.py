"""`xstream profile detectaudio` and `detectaudio-blocks`: the query over a generated recording."""

from __future__ import annotations

import xstream as xs
from detectaudio.detector import Detector
from detectaudio.measure import with_sync
from detectaudio.recording import generate

__all__ = ["declare", "declare_blocks"]


def declare(query: xs.Query, window: int, repeat: int) -> None:
    """Declare four channels in segments of `window` samples, with windows of 32 in between."""
    recording = generate(seconds=10.0, events=4)
    with_sync(query, recording, window, repeat)


def declare_blocks(query: xs.Query, window: int, repeat: int) -> None:
    """Declare it with segments of `window` samples between the operators too."""
    recording = generate(seconds=10.0, events=4)
    with_sync(query, recording, window, repeat, Detector().in_blocks(window))
