"""The memory that a run will take, by purpose, estimated before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import xstream as xs
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import read_manifest
from linearroad.tables.batches import KEPT_REPORT, PERIOD
from linearroad.tables.ledger import ENTRY, PAGE
from xstream.errors import InputError

__all__ = [
    "Account",
    "ExpresswayCount",
    "account_of",
    "available_bytes",
    "check_memory",
    "too_much",
]

KIB, MIB, GIB = 2**10, 2**20, 2**30

#: Bytes per vehicle on the road: its report and the toll it was quoted (31 seconds of both are
#: kept, in arrays with up to a sixteenth of spare room), its entry in the road's table (76 to 85 %
#: full), and its share of the tables of standing cars and of the minute's sums.
KEPT = 8 / 7
REPORT_BYTES = KEPT_REPORT.itemsize * KEPT
QUOTED_BYTES = 4 * KEPT
ROAD_BYTES = 8 / 0.8
STANDING_BYTES = 4.0
#: Bytes per vehicle that was charged: its balance, and its share of the page's entry.
BALANCE_BYTES = 8 + 2 * ENTRY.itemsize / PAGE
#: Bytes per expressway: its operators, small tables, digests, and charges that wait.
OPERATORS_BYTES = 450 * KIB
DIGEST_BYTES_A_MINUTE = 5 * 4 * 8
#: Bytes per expressway of a file with many: statistics, tolls and their outputs of 200 segments,
#: with a quarter of spare room and a copy of the longest table while it grows.
TABLES_BYTES = 200 * (76 + 32 + 8) * 5 // 4 + 200 * 40
#: The interpreter, libraries and compiled code; rows and answers in flight.
PROCESS_BYTES, IN_FLIGHT_BYTES = 420 * MIB, 200 * MIB


@dataclass(frozen=True)
class Account:
    """The memory of a run: name, bytes per expressway and bytes in all, by line."""

    expressways: int
    vehicles: int
    on_the_road: int
    lines: tuple[tuple[str, float, float], ...]

    @property
    def total(self) -> float:
        """The sum of all lines."""
        return sum(line[2] for line in self.lines)


def account_of(base: Path, expressways: int, history_bytes: int) -> Account:
    """The memory of copies of generated expressways at its peak."""
    manifest = read_manifest(base)
    originals = int(manifest["parameters"]["expressways"])
    minutes = int(manifest["parameters"].get("minutes", 180))
    copies = expressways / originals
    vehicles = int(manifest["totals"]["vehicles"]) * copies
    road = sum(
        on_the_road_at_the_end(Layout(base).traffic(x, manifest["parameters"]["format"]))
        for x in range(originals)
    ) * copies  # fmt: skip

    def line(name: str, total: float) -> tuple[str, float, float]:
        return name, total / expressways, total

    lines = (
        line("vehicles on the road: last reports", REPORT_BYTES * road),
        line("vehicles on the road: quoted tolls", QUOTED_BYTES * road),
        line("vehicles on the road: who they are", ROAD_BYTES * road),
        line("vehicles on the road: those that stand, sums", STANDING_BYTES * road),
        line("accounts of vehicles seen", BALANCE_BYTES * vehicles),
        line("operators and small tables", OPERATORS_BYTES * expressways),
        line("digests by minute", DIGEST_BYTES_A_MINUTE * minutes * expressways),
        ("history, shared by copies", history_bytes / originals, float(history_bytes)),
        ("rows and answers on their way", 0.0, float(IN_FLIGHT_BYTES)),
        ("interpreter, libraries, compiled code", 0.0, float(PROCESS_BYTES)),
    )
    return Account(expressways, int(vehicles), int(road), lines)


def on_the_road_at_the_end(path: Path) -> int:
    """Vehicles on an expressway when its stream ends: each reports once in the last 30 seconds.

    Traffic grows until the end of the stream, so this is the maximum.
    """
    if path.suffix != ".parquet":
        return 60_000  # at the end of three hours
    found, end = 0, None
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for group in reversed(range(file.num_row_groups)):
                rows = file.read_row_group(group, columns=["type", "time"])
                times = rows["time"].to_numpy()
                end = int(times[-1]) if end is None else end
                found += int(((times > end - PERIOD) & (rows["type"].to_numpy() == 0)).sum())
                if times[0] <= end - PERIOD:
                    break
    except (OSError, KeyError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return found


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


def too_much(expressways: int, needed: float, free: float, what: str = "are free") -> InputError:
    """The error for a run that does not fit into memory."""
    digits = 1 if needed - free >= 0.1 * GIB else 3  # so that the two figures differ
    return InputError(
        f"{expressways:,} expressways need about {needed / GIB:.{digits}f} GiB of memory, and "
        f"{free / GIB:.{digits}f} GiB {what}"
    )


@xs.compiled
def _mark(seen: NDArray[np.uint8], xways: NDArray[np.int32]) -> int:
    """Mark expressways as seen; returns how many were not. Those with equal marks count as one."""
    new, mask = 0, len(seen) - 1
    for i in range(len(xways)):
        at = xways[i] & mask
        if xways[i] >= 0 and seen[at] == 0:
            seen[at] = 1
            new += 1
    return new


class ExpresswayCount:
    """Counts the expressways of an input while it is read."""

    EVERY = 1024  # new expressways after which the memory is checked

    def __init__(self) -> None:
        self._seen = np.zeros(1 << 20, np.uint8)
        self._count = self._checked = 0
        self._free = 0

    def add(self, xways: NDArray[np.int32]) -> None:
        """Count the expressways of more rows; raises InputError if they do not fit into memory."""
        self._count += _mark(self._seen, xways)
        if self._count < self._checked + self.EVERY:
            return
        self._free = self._free or available_bytes()  # before their tables are allocated
        self._checked = self._count
        if self._count * TABLES_BYTES > self._free:
            raise too_much(self._count, self._count * TABLES_BYTES, self._free)


def check_memory(base: Path, expressways: int, history_bytes: int) -> None:
    """Raise InputError if the copies do not fit into memory."""
    needed, free = account_of(base, expressways, history_bytes).total, available_bytes()
    if needed > free:
        raise too_much(expressways, needed, free)
