"""`xstream profile pipeline`: the query over synthetic pressure."""

from __future__ import annotations

import xstream as xs
from leaks.measure import pipeline
from leaks.pressure import generate

__all__ = ["declare"]


def declare(query: xs.Query, window: int, repeat: int) -> None:
    """Declare PIPELINE with a source of segments of `window` samples."""
    pipeline(query, generate(), window, repeat)
