"""`xstream profile netmon`: the query over synthetic receptions."""

from __future__ import annotations

import xstream as xs
from netmon.measure import network
from netmon.packets import generate

__all__ = ["declare"]


def declare(query: xs.Query, window: int, repeat: int) -> None:
    """Declare six receivers of 4,000 packets, in segments of about `window` words."""
    network(query, generate(), window, repeat)
