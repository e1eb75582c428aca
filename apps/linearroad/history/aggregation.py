"""The compact store, aggregated by Spark from the history's files (see linearroad.history.store).

Each file is summed up where it is read. Spark then shuffles and reduces only a few arrays by
(expressway, day of the week) instead of tens of millions of rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from linearroad.files import save_array
from linearroad.generation.layout import Layout
from linearroad.history.shape import day_of_week
from linearroad.history.store import SEGMENT_SUMS, SEGMENT_SUMS_SHAPE, TOLL_DAYS, TOLL_VIDS, TOLLS
from linearroad.spark import attempt
from linearroad.storage import readable

__all__ = ["build_stores", "segment_sums", "toll_table"]

Sums = NDArray[np.int32]
File = tuple[int, Path]
Tolls = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]


def build_stores(spark: Any, root: Path, xways: list[int]) -> None:
    """Aggregate both histories of some expressways into their stores."""
    context, tasks = spark.sparkContext, [(xway, dow) for xway in xways for dow in range(1, 8)]

    def by_dow(function: Callable[[Path, tuple[int, int]], Any]) -> Any:
        found = context.parallelize(tasks, len(tasks)).flatMap(functools.partial(function, root))
        return found.groupByKey(len(xways))

    # Nothing but the numbers of expressways comes back to the driver.
    attempt(by_dow(_sums_of_days).map(functools.partial(_write_sums, root)).count)
    attempt(by_dow(_tolls_of_days).map(functools.partial(_write_tolls, root)).count)


def _files(root: Path, table: str, xway: int, dow: int, last: int) -> list[File]:
    """The files of one expressway and day of the week."""
    days = [day for day in range(1, last + 1) if day_of_week(day) == dow]
    return [(xway, Layout(root).history(table, xway, day)) for day in days]


def _sums_of_days(root: Path, task: tuple[int, int]) -> list[tuple[int, tuple[int, Sums]]]:
    xway, dow = task
    total: Sums | None = None
    for file in _files(root, "segments", xway, dow, 70):
        for _, sums in segment_sums(file):
            total = sums if total is None else total + sums
    return [] if total is None else [(xway, (dow, total))]


def _tolls_of_days(root: Path, task: tuple[int, int]) -> list[tuple[int, Tolls]]:
    return [_tolls(file) for file in _files(root, "tolls", *task, TOLL_DAYS)]


def _columns(path: Path, *names: str) -> list[NDArray[np.int32]]:
    # A path below xway=... is one file here, not a partition.
    table = pq.read_table(
        readable(path), columns=list(names), partitioning=None, page_checksum_verification=True
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


def _tolls(file: File) -> tuple[int, Tolls]:
    xway, path = file
    vid, day, tolls = _columns(path, "vid", "day", "tolls")
    return xway, (vid, day, tolls)


def _write_sums(root: Path, entry: tuple[int, Iterable[tuple[int, Sums]]]) -> int:
    xway, by_dow = entry
    store = np.zeros(SEGMENT_SUMS_SHAPE, np.int32)
    for dow, sums in by_dow:
        store[dow - 1] = sums.reshape(SEGMENT_SUMS_SHAPE[1:])
    save_array(Layout(root).store(xway) / SEGMENT_SUMS, store)
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
    save_array(Layout(root).store(xway) / TOLL_VIDS, vids)
    save_array(Layout(root).store(xway) / TOLLS, table)
    return xway
