"""History from flat files or Parquet, or from the stores of a generated directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numba import njit
from numpy.typing import NDArray

from linearroad.layout import Layout
from linearroad.manifest import read_manifest
from linearroad.queries.history import History
from linearroad.queries.operators.requests import SUMS, TOLL_DAYS
from linearroad.store import HistoryStore
from xstream.errors import InputError

__all__ = ["load_history"]

TOLL_COLUMNS = ("vid", "day", "xway", "tolls")
SEGMENT_COLUMNS = ("day", "min", "xway", "dir", "seg", "lav", "cnt", "toll")


def load_history(
    directory: Path | None, tolls: Path | None, segment_history: Path | None
) -> History:
    """What is known of the past: a generated directory's, flat files', or nothing."""
    known = History()
    if directory is not None:
        manifest = read_manifest(directory)
        folder = Layout(directory).store(0).parent
        if not folder.is_dir():
            raise InputError(f"{directory} has no history: generate it with --history")
        store = HistoryStore(folder)
        xways = range(int(manifest["parameters"]["expressways"]))
        found = {xway: store.expressway(xway) for xway in xways}
        known = History.of_stores({xway: s for xway, s in found.items() if s is not None})
    return History(
        known.tolls if tolls is None else _tolls(tolls),
        known.sums if segment_history is None else _sums(segment_history),
        known.knows_segments or segment_history is not None,
    )


def _columns(path: Path, names: tuple[str, ...]) -> list[NDArray[np.int64]]:
    try:
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            table = table.rename_columns([name.lower() for name in table.column_names])
        else:
            options = pacsv.ReadOptions(column_names=list(names))
            types = pacsv.ConvertOptions(column_types={name: pa.int64() for name in names})
            table = pacsv.read_csv(path, read_options=options, convert_options=types)
        missing = [name for name in names if name not in table.column_names]
        if missing:
            raise InputError(f"{path} has no column {missing[0]!r}")
        return [table.column(name).to_numpy().astype(np.int64) for name in names]
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _tolls(path: Path) -> dict[int, tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """By expressway: the VIDs, ascending, and their tolls by day."""
    vid, day, xway, spent = _columns(path, TOLL_COLUMNS)
    if len(day) and not ((day >= 1) & (day <= TOLL_DAYS)).all():
        raise InputError(f"{path}: Day is 1 to {TOLL_DAYS}")
    by_xway = {}
    for one in np.unique(xway):
        here = xway == one
        vids, place = np.unique(vid[here], return_inverse=True)
        table = np.zeros((len(vids), TOLL_DAYS), np.int32)
        table[place, day[here] - 1] = spent[here]
        by_xway[int(one)] = (vids.astype(np.int32), table)
    return by_xway


@njit(cache=True)
def _add_sums(sums, day, minute, direction, seg, lav, cnt):  # type: ignore[no-untyped-def]
    for i in range(len(day)):
        cell = sums[(4 - day[i]) % 7, direction[i], minute[i] - 1, seg[i]]
        cell[0] += lav[i]
        cell[1] += cnt[i]
        cell[2] += 1


def _sums(path: Path) -> dict[int, NDArray[np.int32]]:
    """By expressway: sums of Lav and Cnt and the number of days, by day of the week and minute."""
    day, minute, xway, direction, seg, lav, cnt, _ = _columns(path, SEGMENT_COLUMNS)
    bounds: tuple[tuple[str, Any, int, int], ...] = (
        ("Day", day, 1, 70),
        ("Min", minute, 1, 1440),
        ("Dir", direction, 0, 1),
        ("Seg", seg, 0, 99),
    )
    for name, values, low, high in bounds:
        if len(values) and not ((values >= low) & (values <= high)).all():
            raise InputError(f"{path}: {name} is {low} to {high}")
    by_xway = {}
    for one in np.unique(xway):
        here = xway == one
        sums = np.zeros(SUMS, np.int32)
        _add_sums(sums, *(column[here] for column in (day, minute, direction, seg, lav, cnt)))
        by_xway[int(one)] = sums
    return by_xway
