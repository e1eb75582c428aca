"""How much memory this process takes at most while something runs, where Linux tells."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

__all__ = ["ResidentPeak"]

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class ResidentPeak:
    """Bytes by which the process has grown at its largest since this was made.

    >>> peak = ResidentPeak()
    >>> ballast = b"x" * 50_000_000
    >>> peak.grown() > 40_000_000 or peak.grown() == 0
    True
    """

    def __init__(self) -> None:
        # What earlier runs freed goes back to the system, or it would hide what this one takes.
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
        with contextlib.suppress(OSError):
            _CLEAR.write_text("5")
        self.before = _read("VmRSS")

    def grown(self) -> int:
        """The growth; 0 where the system does not tell."""
        return max(0, _read("VmHWM") - self.before)


def _read(field: str) -> int:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
