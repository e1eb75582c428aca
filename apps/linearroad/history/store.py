"""The compact history store: arrays for travel-time and expenditure lookups, by index.

Below `history/store/xway-00000/`, one folder per expressway, three plain .npy files, int32,
C order, made to be memory-mapped:

`segment_sums.npy`, shape (7, 2, 1440, 100, 3), indexed [dow - 1, dir, minute - 1, seg]:
    the sum of Lav, the sum of Cnt and the number of days, over the (at most ten) days of
    SegmentHistory with that day of the week. Sums, so that means are exact: Lav = sum / days;
    where days is 0 there is no history and both means are 0.
`toll_vids.npy`, shape (V,): the VIDs in TollHistory on this expressway, ascending. Those of the
    expressway's own vehicles are consecutive; the VIDs of the few visitors are not.
`tolls.npy`, shape (V, 69): Tolls of the VID at the same index, by Day 1..69 (column day - 1);
    0 where TollHistory has no row, which is also the answer to a query.

Kernels work on the arrays by address, so a store is checked when it is opened: every file against
its size and checksum in the manifest, and every array's type, layout, shape and values.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linearroad.generation.layout import Layout
from linearroad.generation.manifest import Entry, check_file, read_manifest
from linearroad.history._kernels_store import find_vid, travel
from xstream.errors import InputError

__all__ = [
    "SEGMENT_SUMS_SHAPE", "ExpresswayHistory", "HistoryStore", "check_stores", "mapped_stores",
    "open_stores",
]  # fmt: skip

SEGMENT_SUMS, TOLL_VIDS, TOLLS = "segment_sums.npy", "toll_vids.npy", "tolls.npy"
SEGMENT_SUMS_SHAPE = (7, 2, 1440, 100, 3)
TOLL_DAYS = 69


class ExpresswayHistory(NamedTuple):
    """The arrays of one expressway, memory-mapped and read-only."""

    segment_sums: NDArray[np.int32]
    toll_vids: NDArray[np.int32]
    tolls: NDArray[np.int32]


def open_stores(
    root: Path, manifest: Entry, only: Sequence[int] | None = None
) -> dict[int, ExpresswayHistory]:
    """The stores of all (or `only` some) expressways of a generated directory, checked.

    Checksums are computed by all cores, and the pages are in memory afterwards.
    """
    _check_files(root, manifest, os.cpu_count(), only)
    stores = mapped_stores(root, manifest, only)
    _check_values(root, stores)
    return stores


def mapped_stores(
    root: Path, manifest: Entry, only: Sequence[int] | None = None
) -> dict[int, ExpresswayHistory]:
    """The stores of all expressways, by expressway; only the shapes of their arrays are checked."""
    layout, everyone = Layout(root), _expressways(root, manifest)
    return {x: _mapped(layout.store(x)) for x in (everyone if only is None else only)}


def check_stores(root: Path, manifest: Entry, stores: dict[int, ExpresswayHistory]) -> None:
    """Check the contents of stores that are mapped, on one core: the caller uses another."""
    _check_files(root, manifest, 1)
    _check_values(root, stores)


def _expressways(root: Path, manifest: Entry) -> range:
    if not manifest.get("store"):
        raise InputError(f"{root} has no history: generate it with --history")
    return range(int(manifest["parameters"]["expressways"]))


def _check_files(
    root: Path, manifest: Entry, threads: int | None, only: Sequence[int] | None = None
) -> None:
    """Compare all files with their checksums."""
    everyone = _expressways(root, manifest)
    layout, xways = Layout(root), everyone if only is None else only
    listed = _listed(manifest["store"])
    paths = [layout.store(x) / name for x in xways for name in (SEGMENT_SUMS, TOLL_VIDS, TOLLS)]

    def check(path: Path) -> None:
        check_file(path, listed.get(path.relative_to(root).as_posix()), str(layout.manifest))

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(check, paths):
            pass


def _check_values(root: Path, stores: dict[int, ExpresswayHistory]) -> None:
    layout = Layout(root)
    for x, store in stores.items():
        if store.segment_sums.min() < 0:
            raise InputError(f"{layout.store(x) / SEGMENT_SUMS} has negative sums")
        vids = store.toll_vids
        if len(vids) and (vids[0] < 0 or not (vids[1:] > vids[:-1]).all()):
            raise InputError(f"{layout.store(x) / TOLL_VIDS} is not in ascending order")


def _listed(store: Any) -> dict[str, Entry]:
    """The entries of the store's files, by their names; none where the list is malformed."""
    try:
        return {file["file"]: file for entry in store for file in entry["files"]}
    except (KeyError, TypeError):
        return {}


def _mapped(folder: Path) -> ExpresswayHistory:
    """The arrays of one expressway, as the lookups index them."""
    sums = _array(folder / SEGMENT_SUMS, SEGMENT_SUMS_SHAPE)
    vids = _array(folder / TOLL_VIDS, (None,))
    tolls = _array(folder / TOLLS, (len(vids), TOLL_DAYS))
    return ExpresswayHistory(sums, vids, tolls)


def _array(path: Path, shape: tuple[int | None, ...]) -> NDArray[np.int32]:
    """A memory-mapped array, refused unless it is int32 in C order and of the shape."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype("<i4"):
        raise InputError(f"{path} is not an array of int32 (little-endian)")
    if not array.flags.c_contiguous:
        raise InputError(f"{path} is not in C order")
    if array.ndim != len(shape) or any(
        length not in (None, found) for length, found in zip(shape, array.shape, strict=True)
    ):
        raise InputError(f"{path} has shape {array.shape}, which does not fit a history store")
    return array


class HistoryStore:
    """Lookups in the stores of a generated directory, one at a time; the reference for kernels."""

    def __init__(self, root: Path) -> None:
        self._stores = open_stores(root, read_manifest(root))

    def expressway(self, xway: int) -> ExpresswayHistory | None:
        """The arrays of one expressway, or None where there is no history of it."""
        return self._stores.get(xway)

    def expenditure(self, vid: int, day: int, xway: int) -> int:
        """TollHistory's Tolls of (VID, Day, XWay); 0 where there is no row."""
        history = self.expressway(xway)
        if history is None:
            return 0
        place = find_vid(history.toll_vids, vid)
        return int(history.tolls[place, day - 1]) if place >= 0 else 0

    def travel_time(self, xway: int, sinit: int, send: int, dow: int, tod: int) -> tuple[int, int]:
        """Seconds and tolls from `sinit` to `send` (docs/linear-road-rules.md, section 3.3)."""
        history = self.expressway(xway)
        if history is None:  # the history has no days for this expressway
            return 3600 * abs(send - sinit), 0
        seconds, tolls = travel(history.segment_sums, sinit, send, dow, tod)
        return int(seconds), int(tolls)
