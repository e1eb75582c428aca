"""The memory that copies of generated expressways take, by purpose, computed before a run.

Item sizes and small tables are those that the kernels declare as their state.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import xstream as xs
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import read_manifest
from linearroad.operators.accidents import accidents
from linearroad.operators.accounts import accounts
from linearroad.operators.copies import shift
from linearroad.operators.digests import DIGEST_WIDTH, digest_answers, digest_balances
from linearroad.operators.requests import answer_requests
from linearroad.operators.statistics import statistics
from linearroad.operators.tolls import tolls
from linearroad.operators.vehicles import vehicles
from linearroad.run.memory import too_much
from linearroad.schema import KINDS
from linearroad.storage import readable
from linearroad.tables.batches import PERIOD
from linearroad.tables.ledger import PAGE
from xstream.console.memory import available_bytes
from xstream.errors import InputError

__all__ = ["Account", "account_of", "check_memory"]

KIB, MIB = 2**10, 2**20

#: Kernels that every expressway has, and every copy of the base, under rule set `paper`.
PER_EXPRESSWAY: tuple[xs.Kernel, ...] = (
    vehicles, accidents, statistics, tolls, answer_requests, shift, digest_answers,
)  # fmt: skip
PER_COPY: tuple[xs.Kernel, ...] = (accounts, digest_balances)


def _declared(kernel: xs.Kernel) -> dict[str, Any]:
    """The state of a kernel as it starts, by name."""
    return dict(zip(kernel.state_names or (), kernel.states, strict=True))


def _item_bytes(kernel: xs.Kernel, *names: str) -> int:
    """Bytes per item of arrays that have equally many items."""
    return sum(_declared(kernel)[name].dtype.itemsize for name in names)


#: The arrays that grow with the traffic; all others stay as they are declared, or are small lists
#: of what happens in one second.
GROWING: dict[xs.Kernel, tuple[str, ...]] = {
    vehicles: ("vid", "where", "bits", "sum"),
    accidents: ("standing",),
    tolls: ("quoted",),
    accounts: ("entry", "balance", "charge_vid", "charge"),
    digest_answers: ("sums",),
    digest_balances: ("sums",),
}


def _fixed_bytes(kernels: tuple[xs.Kernel, ...]) -> int:
    """The state of kernels as they start, without arrays that grow."""
    return sum(
        array.nbytes
        for kernel in kernels
        for name, array in _declared(kernel).items()
        if name not in GROWING.get(kernel, ())
    )


#: Reports per vehicle on the road: those of 31 seconds are kept, in arrays that grow by a sixteenth
#: and have gaps between batches.
KEPT = 8 / 7
REPORT_BYTES = _item_bytes(vehicles, "vid", "where", "bits") * KEPT
QUOTED_BYTES = _item_bytes(tolls, "quoted") * KEPT
#: Places where cars stand behind accidents in the worst second, as a share of the vehicles on the
#: road at the end. Their table never shrinks; it is three fifths to three quarters full then.
STANDING_BYTES = _item_bytes(accidents, "standing") * 0.11 / (2 / 3)
#: Sums of speeds in the first minute of a trip, as a share of the vehicles on the road; the table
#: doubles when it is two thirds full.
SUM_BYTES = _item_bytes(vehicles, "sum") * 0.04
#: Charges of a second: a quarter of the reports, in arrays that double.
WAITING_BYTES = _item_bytes(accounts, "charge_vid", "charge") / PERIOD / 4 * 1.5
#: An operator with its ports, frame and record in Python, and the operators of an expressway.
OPERATOR_BYTES = 8 * KIB
OPERATORS = 16
DIGEST_BYTES_A_MINUTE = KINDS * DIGEST_WIDTH * 8
#: Digests in the two kernels, and those of the run that are compared.
DIGESTS = 3
#: The interpreter, libraries and compiled code; rows and answers in flight.
PROCESS_BYTES, IN_FLIGHT_BYTES = 350 * MIB, 30 * MIB


def _entry_bytes(pages: float) -> int:
    """The table of a copy's pages: it doubles when it is two thirds full."""
    entry = _declared(accounts)["entry"]
    length = len(entry)
    while 3 * pages > 2 * length:
        length *= 2
    return int(length * entry.itemsize)


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
    seen = int(manifest["totals"]["vehicles"]) * copies
    fixed = _fixed_bytes(PER_COPY) * copies
    road = sum(
        on_the_road_at_the_end(Layout(base).traffic(x, manifest["parameters"]["format"]))
        for x in range(originals)
    ) * copies  # fmt: skip

    def line(name: str, total: float) -> tuple[str, float, float]:
        return name, total / expressways, total

    lines = (
        line("vehicles on the road: last reports", REPORT_BYTES * road),
        line("vehicles on the road: quoted tolls", QUOTED_BYTES * road),
        line("vehicles on the road: those that stand, sums", (STANDING_BYTES + SUM_BYTES) * road),
        line("charges that wait for the end of their second", WAITING_BYTES * road),
        line("accounts: balances of vehicles seen", _item_bytes(accounts, "balance") * seen),
        line("accounts: where they are", _entry_bytes(seen / copies / PAGE) * copies),
        line("small tables", _fixed_bytes(PER_EXPRESSWAY) * expressways + fixed),
        line("operators", OPERATOR_BYTES * OPERATORS * expressways),
        line("digests by minute", DIGESTS * DIGEST_BYTES_A_MINUTE * minutes * expressways),
        ("history, shared by copies", history_bytes / originals, float(history_bytes)),
        ("rows and answers on their way", 0.0, float(IN_FLIGHT_BYTES)),
        ("interpreter, libraries, compiled code", 0.0, float(PROCESS_BYTES)),
    )
    return Account(expressways, int(seen), int(road), lines)


def on_the_road_at_the_end(path: Path) -> int:
    """Vehicles on an expressway when its stream ends: each reports once in the last 30 seconds.

    Traffic grows until the end of the stream, so this is the maximum.
    """
    if path.suffix != ".parquet":
        return 60_000  # at the end of three hours
    found, end = 0, None
    try:
        with pq.ParquetFile(readable(path), page_checksum_verification=True) as file:
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


def _values(column: pa.ChunkedArray) -> NDArray[np.signedinteger[Any]]:
    """The values of a column; `to_numpy` would import pandas, and `cast` pyarrow.compute."""
    return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks])


def check_memory(base: Path, expressways: int, history_bytes: int) -> None:
    """Raise InputError if the copies do not fit into memory."""
    needed, free = account_of(base, expressways, history_bytes).total, available_bytes()
    if needed > free:
        raise too_much(expressways, needed, free)
