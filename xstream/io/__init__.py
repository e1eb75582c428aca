"""Sources and sinks: what streams are read from and written to."""

from __future__ import annotations

from xstream.io.array import array, samples
from xstream.io.iterable import iterable

__all__ = ["array", "iterable", "samples"]
