"""`xstream profile detectaudio` and `detectaudio-blocks`: the query over a generated recording."""

from __future__ import annotations

import xstream as xs
from detectaudio.detector import Detector
from detectaudio.measure import with_sync
from detectaudio.recording import generate

__all__ = ["declare", "declare_blocks"]


def declare(query: xs.Query, window: int, repeat: int) -> None:
    """Four channels in segments of `window` samples; windows of 32 between the operators."""
    recording = generate(seconds=10.0, events=4)
    with_sync(query, recording, window, repeat)


def declare_blocks(query: xs.Query, window: int, repeat: int) -> None:
    """The same with segments of `window` samples between the operators too."""
    recording = generate(seconds=10.0, events=4)
    with_sync(query, recording, window, repeat, Detector().in_blocks(window))
