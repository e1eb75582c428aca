"""The compact store, aggregated by Spark from the history's files (see linearroad.history.store).

Each file is summed up where it is read. Spark then shuffles and reduces only a few arrays by
(expressway, day of the week) instead of tens of millions of rows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from linearroad.files import whole
from linearroad.generation.layout import Layout
from linearroad.history.shape import day_of_week
from linearroad.history.store import SEGMENT_SUMS, SEGMENT_SUMS_SHAPE, TOLL_DAYS, TOLL_VIDS, TOLLS
from linearroad.spark import attempt

__all__ = ["build_stores", "segment_sums", "toll_table"]

Sums = NDArray[np.int32]
File = tuple[int, str]
Tolls = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]


def build_stores(spark: Any, root: Path, xways: list[int]) -> None:
    """Aggregate both histories of some expressways into their stores."""
    context = spark.sparkContext

    def files(table: str) -> Any:
        found: list[File] = [
            (xway, str(path))
            for xway in xways
            for path in sorted((root / "history" / table / f"xway={xway}").glob("*.parquet"))
        ]
        return context.parallelize(found, max(len(found), 1))

    sums = files("segments").flatMap(segment_sums).reduceByKey(np.add, len(xways))
    by_xway = sums.map(_by_xway).groupByKey(len(xways))
    attempt(by_xway.map(functools.partial(_write_sums, root)).collect)
    tolls = files("tolls").map(_tolls).groupByKey(len(xways))
    attempt(tolls.map(functools.partial(_write_tolls, root)).collect)


def _columns(path: str, *names: str) -> list[NDArray[np.int32]]:
    # A path below xway=... is one file here, not a partition.
    table = pq.read_table(
        path, columns=list(names), partitioning=None, page_checksum_verification=True
    )
    return [table[name].to_numpy() for name in names]


def segment_sums(file: File) -> list[tuple[tuple[int, int], Sums]]:
    """Sums of Lav and Cnt and the number of days of one file, by (expressway, day of the week)."""
    xway, path = file
    day, minute, direction, seg, lav, cnt = _columns(path, "day", "min", "dir", "seg", "lav", "cnt")
    place = (direction * 1440 + minute - 1) * 100 + seg
    cells = 2 * 1440 * 100
    found: dict[tuple[int, int], Sums] = {}
    for one in np.unique(day).tolist():
        rows = day == one
        # Whole numbers far below 2**53: the floats of bincount are exact.
        parts = (np.bincount(place[rows], weight, cells) for weight in (lav[rows], cnt[rows]))
        counted = np.bincount(place[rows], minlength=cells)
        sums = np.stack([*parts, counted], axis=1).astype(np.int32)
        key = (xway, day_of_week(one))
        found[key] = found[key] + sums if key in found else sums
    return list(found.items())


def _by_xway(entry: tuple[tuple[int, int], Sums]) -> tuple[int, tuple[int, Sums]]:
    (xway, dow), sums = entry
    return xway, (dow, sums)


def _tolls(file: File) -> tuple[int, Tolls]:
    xway, path = file
    vid, day, tolls = _columns(path, "vid", "day", "tolls")
    return xway, (vid, day, tolls)


def _save(path: Path, array: NDArray[Any]) -> None:
    with whole(path) as temporary, temporary.open("wb") as file:
        np.save(file, array)


def _write_sums(root: Path, entry: tuple[int, Iterable[tuple[int, Sums]]]) -> int:
    xway, by_dow = entry
    store = np.zeros(SEGMENT_SUMS_SHAPE, np.int32)
    for dow, sums in by_dow:
        store[dow - 1] = sums.reshape(SEGMENT_SUMS_SHAPE[1:])
    _save(Layout(root).store(xway) / SEGMENT_SUMS, store)
    return xway


def toll_table(
    vid: NDArray[np.int32], day: NDArray[np.int32], tolls: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """VIDs, ascending, and their tolls by day; a day without a row is 0.

    >>> toll_table(*np.array([[7, 3, 7], [1, 2, 69], [10, 20, 30]], np.int32))[0].tolist()
    [3, 7]
    """
    vids, place = np.unique(vid, return_inverse=True)
    table = np.zeros((len(vids), TOLL_DAYS), np.int32)
    table[place, day - 1] = tolls
    return vids.astype(np.int32), table


def _write_tolls(root: Path, entry: tuple[int, Iterable[Tolls]]) -> int:
    xway, parts = entry
    vids, table = toll_table(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    _save(Layout(root).store(xway) / TOLL_VIDS, vids)
    _save(Layout(root).store(xway) / TOLLS, table)
    return xway
