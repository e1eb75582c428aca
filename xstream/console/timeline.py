"""`timeline.csv`: the progress and the resources of a run, one line per wall-clock second."""

from __future__ import annotations

import csv
import os
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from xstream.console.folder import new_file

__all__ = ["COLUMNS", "Row", "Timeline", "attributed", "process_age_s", "read_timeline"]

#: All but the lag and the memory count from the start, over all processors: the time of the process
#: itself, of all others, and what the host took away (`steal_s`). Page faults are those of the
#: process, bytes those of real disks.
COLUMNS = (
    "wall_s", "stream_s", "lag_s", "rows", "answers", "memory_bytes", "cpu_s", "others_cpu_s",
    "steal_s", "major_faults", "minor_faults", "read_bytes", "write_bytes",
)  # fmt: skip
Row = dict[str, float]

#: From these values on a cause is named: the share of a second that others or the host took, page
#: faults that went to disk, pages that were touched for the first time, bytes from a disk.
_OTHERS, _STOLEN, _MAJOR, _MINOR, _BYTES = 0.3, 0.05, 1, 20_000, 2**20
_IDLE = ("idle", "iowait", "steal", "guest", "guest_nice")  # not busy, or counted elsewhere


def process_age_s() -> float:
    """Seconds since this process was started, before its interpreter began; to 0.01 s."""
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(started) / os.sysconf("SC_CLK_TCK")


class Timeline:
    """Writes the progress of a run and the resources it uses, at most once per second.

    `wall_s` returns the seconds since the run started, and 0 before.
    """

    def __init__(self, path: Path, wall_s: Callable[[], float], go_on: bool = False) -> None:
        fresh = not go_on or not path.exists()
        self._file = (new_file(path) if fresh else path).open("a", buffering=1, newline="\n")
        if fresh:
            self._file.write(",".join(COLUMNS) + "\n")
        self._process, self._wall_s = psutil.Process(), wall_s
        self._last = 0.0
        self._before = self._counters()

    def _counters(self) -> tuple[float, ...]:
        """CPU times, page faults and bytes since the start of the process or the machine."""
        used, faults = self._process.cpu_times(), resource.getrusage(resource.RUSAGE_SELF)
        own, machine = used.user + used.system, psutil.cpu_times()._asdict()
        busy = sum(spent for what, spent in machine.items() if what not in _IDLE)
        steal = machine.get("steal", 0.0)
        try:
            disk = self._process.io_counters()
            transferred = disk.read_bytes, disk.write_bytes
        except (AttributeError, psutil.Error):  # not every system counts them
            transferred = 0, 0
        return own, busy - own, steal, faults.ru_majflt, faults.ru_minflt, *transferred

    def note(
        self, stream_s: int, lag_s: float, rows: int, answers: int, last: bool = False
    ) -> None:  # fmt: skip
        """Write a line, unless the last one is less than a second old."""
        now = self._wall_s()
        if not now and not last:  # the run is still being loaded, which does not count
            self._before = self._counters()
        if now - self._last < 1.0 and not last:
            return
        self._last = now
        since = [a - b for a, b in zip(self._counters(), self._before, strict=True)]
        self._file.write(
            f"{now:.3f},{stream_s},{lag_s:.3f},{rows},{answers},{self._process.memory_info().rss},"
            f"{','.join(f'{n:.2f}' for n in since[:3])},{','.join(f'{n:.0f}' for n in since[3:])}\n"
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_timeline(path: Path) -> list[Row]:
    """The lines of a timeline."""
    lines = path.read_text().splitlines()
    return [{name: float(text) for name, text in row.items()} for row in csv.DictReader(lines)]


def attributed(rows: Sequence[Row], second: int, delay_s: float) -> str:
    """What happened while the answers of a second took longest, in one sentence."""
    told = f"the answers of second {second:,} took longest, {delay_s:.3f} stream seconds"
    after = next((i for i, row in enumerate(rows) if row["stream_s"] >= second and i), None)
    if after is None:
        return told
    # The line before may be up to a second older than the delay.
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
