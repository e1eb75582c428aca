"""The compact store, aggregated by Spark from the history's files (see linearroad.store)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linearroad.files import whole
from linearroad.layout import Layout
from linearroad.spark import attempt
from linearroad.store import SEGMENT_SUMS, SEGMENT_SUMS_SHAPE, TOLL_DAYS, TOLL_VIDS, TOLLS

__all__ = ["build_stores", "toll_table"]

# pmod: Spark's % keeps the sign of its left side.
DOW = "cast(pmod(5 - 1 - day, 7) as int)"
Batches = Iterable[Any]


def build_stores(spark: Any, root: Path, xways: list[int]) -> None:
    """Aggregate both histories of some expressways into their stores."""
    chosen = f"xway in ({', '.join(str(xway) for xway in xways)})"
    segments = (
        spark.read.parquet(str(root / "history" / "segments"))
        .where(chosen)
        .selectExpr("xway", f"{DOW} as dow", "dir", "min", "seg", "lav", "cnt")
        .groupBy("xway", "dow", "dir", "min", "seg")
        .agg({"lav": "sum", "cnt": "sum", "*": "count"})
        .selectExpr("*", "`sum(lav)` as lavs", "`sum(cnt)` as cnts", "`count(1)` as days")
        .select("xway", "dow", "dir", "min", "seg", "lavs", "cnts", "days")
    )
    tolls = spark.read.parquet(str(root / "history" / "tolls")).where(chosen)
    tolls = tolls.select("xway", "vid", "day", "tolls")
    for frame, write in ((segments, segment_writer(root)), (tolls, toll_writer(root))):
        # All rows of an expressway meet in one task, which writes its arrays.
        gathered = frame.repartition(len(xways), "xway").mapInArrow(write, "xway int")
        attempt(gathered.collect)


def _by_xway(batches: Batches) -> dict[int, list[list[NDArray[Any]]]]:
    """The columns of all batches, apart by expressway."""
    found: dict[int, list[list[NDArray[Any]]]] = {}
    for batch in batches:
        columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        for xway in np.unique(columns[0]).tolist():
            rows = columns[0] == xway
            found.setdefault(xway, []).append([column[rows] for column in columns[1:]])
    return found


def _save(path: Path, array: NDArray[Any]) -> None:
    with whole(path) as temporary, temporary.open("wb") as file:
        np.save(file, array)


def _answer(xways: list[int]) -> Any:
    import pyarrow as pa

    return pa.record_batch([pa.array(xways, pa.int32())], names=["xway"])


def segment_writer(root: Path) -> Callable[[Batches], Iterator[Any]]:
    """For mapInArrow: fill the sums of each expressway that comes by."""

    def write(batches: Batches) -> Iterator[Any]:
        found: dict[int, NDArray[np.int32]] = {}
        for batch in batches:
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            for xway in np.unique(columns[0]).tolist():
                if xway not in found:
                    found[xway] = np.zeros(SEGMENT_SUMS_SHAPE, np.int32)
                rows = columns[0] == xway
                dow, direction, minute, segment, *values = (c[rows] for c in columns[1:])
                found[xway][dow, direction, minute - 1, segment] = np.stack(values, axis=1)
        for xway, sums in found.items():
            _save(Layout(root).store(xway) / SEGMENT_SUMS, sums)
        yield _answer(sorted(found))

    return write


def toll_table(
    vid: NDArray[np.int32], day: NDArray[np.int32], tolls: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """VIDs, ascending, and their tolls by day; a day without a row is 0.

    >>> toll_table(*np.array([[7, 3, 7], [1, 2, 69], [10, 20, 30]], np.int32))[0].tolist()
    [3, 7]
    """
    vids, place = np.unique(vid, return_inverse=True)
    table = np.zeros((len(vids), TOLL_DAYS), np.int32)
    np.add.at(table, (place, day - 1), tolls)
    return vids.astype(np.int32), table


def toll_writer(root: Path) -> Callable[[Batches], Iterator[Any]]:
    """For mapInArrow: sort the tolls of each expressway by VID and day."""

    def write(batches: Batches) -> Iterator[Any]:
        found = _by_xway(batches)
        for xway, parts in found.items():
            vids, table = toll_table(
                *(np.concatenate(column) for column in zip(*parts, strict=True))
            )
            _save(Layout(root).store(xway) / TOLL_VIDS, vids)
            _save(Layout(root).store(xway) / TOLLS, table)
        yield _answer(sorted(found))

    return write
