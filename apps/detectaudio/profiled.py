"""`xstream profile detectaudio`: the query over a generated recording."""

from __future__ import annotations

import xstream as xs
from detectaudio.measure import with_sync
from detectaudio.recording import generate

__all__ = ["declare"]


def declare(query: xs.Query, window: int, repeat: int) -> None:
    """Four channels, detector, CFAR and sync, in segments of `window` samples."""
    recording = generate(seconds=10.0, events=4)
    with_sync(query, recording, window, repeat)
