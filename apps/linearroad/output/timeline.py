"""`timeline.csv`: how a run went along, a line a second of the wall clock; and what held it up."""

from __future__ import annotations

import csv
import resource
from collections.abc import Sequence
from pathlib import Path

import psutil

from linearroad.output.folder import new_file
from linearroad.output.sink import RunResult
from linearroad.run.schedule import Schedule

__all__ = ["COLUMNS", "Row", "Timeline", "attributed", "read_timeline"]

#: All but the lag and the memory count from the start, over all processors: the process's own time,
#: that of everybody else, and what the host took away (`steal_s`). Faults are the process's, bytes
#: those of real disks.
COLUMNS = (
    "wall_s", "stream_s", "lag_s", "rows", "answers", "memory_bytes", "cpu_s", "others_cpu_s",
    "steal_s", "major_faults", "minor_faults", "read_bytes", "write_bytes",
)  # fmt: skip
Row = dict[str, float]

#: From these on, something is worth naming: what others or the host took of a second, faults that
#: went to disk, pages that were touched first, bytes from a disk.
_OTHERS, _STOLEN, _MAJOR, _MINOR, _BYTES = 0.3, 0.05, 1, 20_000, 2**20
_IDLE = ("idle", "iowait", "steal", "guest", "guest_nice")  # not busy, or counted already


class Timeline:
    """Notes where a run is and what it uses, at most once a second."""

    def __init__(self, path: Path, schedule: Schedule) -> None:
        self._file = new_file(path).open("x", buffering=1, newline="\n")
        self._file.write(",".join(COLUMNS) + "\n")
        self._process, self._time = psutil.Process(), schedule.time
        self._last = 0.0
        self._before = self._counters()

    def _counters(self) -> tuple[float, ...]:
        """CPU times, faults and bytes, since the process or the machine began."""
        used, faults = self._process.cpu_times(), resource.getrusage(resource.RUSAGE_SELF)
        own, machine = used.user + used.system, psutil.cpu_times()._asdict()
        busy = sum(spent for what, spent in machine.items() if what not in _IDLE)
        steal = machine.get("steal", 0.0)
        try:
            disk = self._process.io_counters()
            transferred = disk.read_bytes, disk.write_bytes
        except (AttributeError, psutil.Error):  # not every system tells
            transferred = 0, 0
        return own, busy - own, steal, faults.ru_majflt, faults.ru_minflt, *transferred

    def note(self, result: RunResult, last: bool = False) -> None:
        """A line, unless the last one is younger than a second."""
        now = self._time.wall_s()
        if not now and not last:  # everything is still being loaded, and nothing counts
            self._before = self._counters()
        if now - self._last < 1.0 and not last:
            return
        self._last = now
        since = [a - b for a, b in zip(self._counters(), self._before, strict=True)]
        self._file.write(
            f"{now:.3f},{result.stream_seconds},{result.lag_s:.3f},{result.rows},"
            f"{sum(result.answers.values())},{self._process.memory_info().rss},"
            f"{','.join(f'{n:.2f}' for n in since[:3])},{','.join(f'{n:.0f}' for n in since[3:])}\n"
        )

    def close(self) -> None:
        """Everything is on disk."""
        self._file.close()


def read_timeline(path: Path) -> list[Row]:
    """What was noted, line by line."""
    with path.open(newline="") as file:
        return [{name: float(text) for name, text in row.items()} for row in csv.DictReader(file)]


def attributed(rows: Sequence[Row], second: int, delay_s: float) -> str:
    """What went on while the answers of a second took as long as they did, in one sentence."""
    told = f"the answers of second {second:,} took longest, {delay_s:.3f} stream seconds"
    after = next((i for i, row in enumerate(rows) if row["stream_s"] >= second and i), None)
    if after is None:
        return told
    # What was noted last before may have been noted up to a second before the delay began.
    before = rows[max(after - 2, 0)]
    upto = rows[min(after + 1, len(rows) - 1)]
    during = {name: upto[name] - before[name] for name in COLUMNS}
    wall_s = max(during["wall_s"], 1e-3)
    causes = []
    if during["others_cpu_s"] >= _OTHERS * wall_s:
        causes.append(f"{during['others_cpu_s'] / wall_s:.2f} processors busy with other work")
    if during["steal_s"] >= _STOLEN * wall_s:
        causes.append(f"{during['steal_s']:.2f} s of processor time stolen by the host")
    if during["major_faults"] >= _MAJOR:
        causes.append(f"{during['major_faults']:,.0f} page faults that went to disk")
    if during["minor_faults"] >= _MINOR:
        causes.append(f"{during['minor_faults']:,.0f} pages touched for the first time")
    for what in ("read", "write"):
        if during[f"{what}_bytes"] >= _BYTES:
            moved = during[f"{what}_bytes"] / 2**20
            causes.append(
                f"{moved:,.0f} MiB {'read from' if what == 'read' else 'written to'} disk"
            )
    busy = during["cpu_s"] / wall_s
    causes.append(f"{busy:.2f} processors busy with it")
    return f"{told}; in the {wall_s:.1f} s around it: {', '.join(causes)}"
