"""`timeline.csv`: how a run went along, a line a second of the wall clock."""

from __future__ import annotations

from pathlib import Path

import psutil

from linearroad.queries.answering import RunResult
from linearroad.queries.feeding import Clock

__all__ = ["Timeline"]

HEADER = "wall_s,stream_s,lag_s,rows,answers,memory_bytes,cpu_s"


class Timeline:
    """Notes where a run is and what it uses, at most once a second."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._file = path.open("w", buffering=1, newline="\n")
        self._file.write(HEADER + "\n")
        self._process, self._clock = psutil.Process(), clock
        self._last = 0.0
        self._cpu_before = self._cpu_s()

    def _cpu_s(self) -> float:
        used = self._process.cpu_times()
        return float(used.user + used.system)

    def note(self, result: RunResult, last: bool = False) -> None:
        """A line, unless the last one is younger than a second."""
        now = self._clock.wall_seconds()
        if now - self._last < 1.0 and not last:
            return
        self._last = now
        memory_bytes = self._process.memory_info().rss
        cpu_s = self._cpu_s() - self._cpu_before
        self._file.write(
            f"{now:.3f},{result.stream_seconds},{result.lag_s:.3f},{result.rows},"
            f"{sum(result.answers.values())},{memory_bytes},{cpu_s:.2f}\n"
        )

    def close(self) -> None:
        """Everything is on disk."""
        self._file.close()
