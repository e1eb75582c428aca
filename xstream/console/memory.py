"""The memory that a process can still take."""

from __future__ import annotations

from pathlib import Path

import psutil

__all__ = ["available_bytes"]


def available_bytes() -> int:
    """The memory that this process can still take, of the machine or of its control group."""
    free = int(psutil.virtual_memory().available)
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        cached = int(stat["active_file"]) + int(stat["inactive_file"])  # released when needed
        return min(free, limit - used + cached)
    except (OSError, ValueError, KeyError):  # no group, or no limit
        return free
