"""Sources and sinks: what streams are read from and written to."""

from __future__ import annotations

from xstream.io.array import array, samples
from xstream.io.channel import Channel, channel
from xstream.io.clock import Clock, StreamTime, SystemClock
from xstream.io.iterable import iterable

__all__ = [
    "Channel",
    "Clock",
    "StreamTime",
    "SystemClock",
    "array",
    "channel",
    "iterable",
    "samples",
]
