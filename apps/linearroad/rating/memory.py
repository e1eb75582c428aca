"""The memory that copies of generated expressways take, by purpose, estimated before a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from linearroad.generation.layout import Layout
from linearroad.generation.manifest import read_manifest
from linearroad.run.memory import too_much
from linearroad.tables.batches import KEPT_REPORT, PERIOD
from linearroad.tables.ledger import ENTRY, PAGE
from xstream.console.memory import available_bytes
from xstream.errors import InputError

__all__ = ["Account", "account_of", "check_memory"]

KIB, MIB = 2**10, 2**20

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
                kinds, times = (_values(rows[name]) for name in ("type", "time"))
                end = int(times[-1]) if end is None else end
                found += int(((times > end - PERIOD) & (kinds == 0)).sum())
                if times[0] <= end - PERIOD:
                    break
    except (OSError, KeyError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return found


def _values(column: pa.ChunkedArray) -> NDArray[np.int32]:
    """The values of a column of int32; `to_numpy` would import pandas."""
    return np.concatenate([np.from_dlpack(chunk) for chunk in column.cast(pa.int32()).chunks])


def check_memory(base: Path, expressways: int, history_bytes: int) -> None:
    """Raise InputError if the copies do not fit into memory."""
    needed, free = account_of(base, expressways, history_bytes).total, available_bytes()
    if needed > free:
        raise too_much(expressways, needed, free)
