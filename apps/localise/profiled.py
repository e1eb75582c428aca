"""`xstream profile localise`: the query over a generated scene."""

from __future__ import annotations

import xstream as xs
from localise.measure import field
from localise.scene import generate

__all__ = ["declare"]


def declare(query: xs.Query, window: int, repeat: int) -> None:
    """Declare four arrays of four channels, in segments of `window` samples."""
    field(query, generate(), window, repeat)
