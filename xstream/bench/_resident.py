"""The peak of this process's resident memory while something runs (Linux only)."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

__all__ = ["ResidentPeak"]

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class ResidentPeak:
    """The largest growth of the resident memory since the object was created, in bytes.

    >>> peak = ResidentPeak()
    >>> ballast = b"x" * 50_000_000
    >>> peak.grown() > 40_000_000
    True
    """

    def __init__(self) -> None:
        # Memory that earlier runs freed is returned to the system; growth into it would not show.
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
        with contextlib.suppress(OSError):
            _CLEAR.write_text("5")
        self.before = _read("VmRSS")

    def grown(self) -> int:
        """The growth; 0 if the system does not report it."""
        return max(0, _read("VmHWM") - self.before)


def _read(field: str) -> int:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
