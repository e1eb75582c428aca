"""History from flat files or Parquet: tables of tolls and of segment statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.history.store import SEGMENT_SUMS_SHAPE, TOLL_DAYS
from xstream.errors import InputError
from xstream.io.integer_columns import check_ranges, integer_columns

__all__ = ["SEGMENT_COLUMNS", "TOLL_COLUMNS", "read_sums", "read_tolls"]

TOLL_COLUMNS = ("vid", "day", "xway", "tolls")
SEGMENT_COLUMNS = ("day", "min", "xway", "dir", "seg", "lav", "cnt", "toll")
MOST = 2**31 - 1  # values of history are int32


def read_tolls(path: Path) -> dict[int, tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """By expressway: the VIDs, ascending, and their tolls by day."""
    vid, day, xway, spent = integer_columns(path, TOLL_COLUMNS)
    check_ranges(
        path, ("VID", vid, -MOST, MOST), ("Day", day, 1, TOLL_DAYS), ("XWay", xway, -MOST, MOST),
        ("Tolls", spent, -MOST, MOST),
    )  # fmt: skip
    by_xway = {}
    for one in np.unique(xway):
        here = xway == one
        vids, place = np.unique(vid[here], return_inverse=True)
        table = np.zeros((len(vids), TOLL_DAYS), np.int32)
        table[place, day[here] - 1] = spent[here]
        by_xway[int(one)] = (vids.astype(np.int32), table)
    return by_xway


@xs.compiled
def _add_sums(sums, day, minute, direction, seg, lav, cnt):  # type: ignore[no-untyped-def]
    for i in range(len(day)):
        cell = sums[(4 - day[i]) % 7, direction[i], minute[i] - 1, seg[i]]
        cell[0] += lav[i]
        cell[1] += cnt[i]
        cell[2] += 1


def read_sums(path: Path) -> dict[int, NDArray[np.int32]]:
    """By expressway: sums of Lav and Cnt and the number of days, by day of the week and minute."""
    day, minute, xway, direction, seg, lav, cnt, _ = integer_columns(path, SEGMENT_COLUMNS)
    check_ranges(
        path, ("Day", day, 1, 70), ("Min", minute, 1, 1440), ("XWay", xway, -MOST, MOST),
        ("Dir", direction, 0, 1), ("Seg", seg, 0, 99), ("Lav", lav, -MOST, MOST),
        ("Cnt", cnt, -MOST, MOST),
    )  # fmt: skip
    by_xway = {}
    for one in np.unique(xway):
        here = xway == one
        sums = np.zeros(SEGMENT_SUMS_SHAPE, np.int64)
        _add_sums(sums, *(column[here] for column in (day, minute, direction, seg, lav, cnt)))
        if max(sums.max(), -sums.min()) > MOST:
            raise InputError(
                f"{path}: sums of Lav or Cnt of a minute and segment of XWay {one} exceed "
                f"{MOST:,}, the largest value that a history can hold"
            )
        by_xway[int(one)] = sums.astype(np.int32)
    return by_xway
