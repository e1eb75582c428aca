"""`timeline.csv`: how a run went along, a line a second of the wall clock."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from linearroad.queries.answering import RunResult

__all__ = ["Timeline"]

HEADER = "wall_s,stream_s,lag_s,rows,answers,memory_bytes,cpu_s"


class Timeline:
    """Notes where a run is and what it uses, at most once a second."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", newline="\n")
        self._file.write(HEADER + "\n")
        self._process = psutil.Process()
        self._began = self._last = time.perf_counter()
        self._cpu_before = self._cpu_s()
        self.memory_bytes = self._process.memory_info().rss

    def _cpu_s(self) -> float:
        used = self._process.cpu_times()
        return float(used.user + used.system)

    def start(self) -> None:
        """The run begins now."""
        self._began = self._last = time.perf_counter()
        self._cpu_before = self._cpu_s()

    def note(self, result: RunResult, last: bool = False) -> None:
        """A line, unless the last one is younger than a second."""
        now = time.perf_counter()
        if now - self._last < 1.0 and not last:
            return
        self._last = now
        self.memory_bytes = self._process.memory_info().rss
        self._file.write(
            f"{now - self._began:.3f},{result.stream_seconds},{result.lag_s:.3f},{result.rows},"
            f"{sum(result.answers.values())},{self.memory_bytes},"
            f"{self._cpu_s() - self._cpu_before:.2f}\n"
        )

    def close(self) -> None:
        """Everything is on disk."""
        self._file.close()
