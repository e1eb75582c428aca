"""The compact history store: what travel-time and expenditure queries look up, by position.

Below `history/store/xway-00000/`, one folder per expressway, three plain .npy files, int32,
C order, made to be memory-mapped:

`segment_sums.npy`, shape (7, 2, 1440, 100, 3), indexed [dow - 1, dir, minute - 1, seg]:
    the sum of Lav, the sum of Cnt and the number of days, over the (at most ten) days of
    SegmentHistory with that day of the week. Sums, so that means are exact: Lav = sum / days;
    where days is 0 there is no history and both means are 0.
`toll_vids.npy`, shape (V,): the VIDs that TollHistory knows on this expressway, ascending. Those of
    the expressway's own vehicles are consecutive; the few visitors' lie elsewhere.
`tolls.npy`, shape (V, 69): Tolls of the VID at the same place, by Day 1..69 (column day - 1);
    0 where TollHistory has no row, which is what a query answers then.

>>> HistoryStore(Path("nowhere")).expenditure(vid=1, day=1, xway=0)
0
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linearroad._kernels_store import find_vid, travel

__all__ = ["SEGMENT_SUMS_SHAPE", "ExpresswayHistory", "HistoryStore"]

SEGMENT_SUMS, TOLL_VIDS, TOLLS = "segment_sums.npy", "toll_vids.npy", "tolls.npy"
SEGMENT_SUMS_SHAPE = (7, 2, 1440, 100, 3)
TOLL_DAYS = 69


class ExpresswayHistory(NamedTuple):
    """The arrays of one expressway, memory-mapped and read-only."""

    segment_sums: NDArray[np.int32]
    toll_vids: NDArray[np.int32]
    tolls: NDArray[np.int32]


class HistoryStore:
    """The stores of all expressways below a folder (`DIR/history/store`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open = cache(self._map)

    def _map(self, xway: int) -> ExpresswayHistory | None:
        place = self.folder / f"xway-{xway:05d}"
        if not place.is_dir():
            return None
        return ExpresswayHistory(
            *(np.load(place / name, mmap_mode="r") for name in (SEGMENT_SUMS, TOLL_VIDS, TOLLS))
        )

    def expressway(self, xway: int) -> ExpresswayHistory | None:
        """The arrays of one expressway, or None where there is no history of it."""
        return self._open(xway)

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
        if history is None:
            return -1, -1
        seconds, tolls = travel(history.segment_sums, sinit, send, dow, tod)
        return int(seconds), int(tolls)
