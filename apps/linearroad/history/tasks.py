"""History, one task per expressway and day, and the compact store that Spark aggregates from it."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linearroad.files import table_writer
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import Entry, file_entry, finished, write_json, write_receipt
from linearroad.generation.parameters import TrafficParameters
from linearroad.generation.progress import Work
from linearroad.generation.runner import Runner, receipts
from linearroad.history import _kernels as k
from linearroad.history.shape import day_of_week, levels, load_profile
from linearroad.traffic._kernels_cars import mix, unit
from linearroad.traffic.demand import exit_shares
from linearroad.traffic.simulation import expressway_key

__all__ = ["SEGMENT_COLUMNS", "TOLL_COLUMNS", "make_history", "write_day"]

SEGMENT_COLUMNS = ("day", "min", "dir", "seg", "lav", "cnt", "toll")
TOLL_COLUMNS = ("vid", "day", "tolls")
SEGMENT_DAYS, TOLL_DAYS = 70, 69
SALT_DAY = 0xDA7


def busyness(seed: int, xway: int, day: int) -> float:
    """A factor from 0.95 to 1.05 by which days of the same kind differ."""
    key = np.uint64(mix(expressway_key(seed, xway), np.int64(SALT_DAY)))
    return 0.95 + 0.1 * float(unit(key, np.int64(day)))


def write_day(root: Path, parameters: TrafficParameters, task: tuple[int, int]) -> Entry:
    """Write one day of one expressway: SegmentHistory, and TollHistory up to day 69."""
    xway, day = task
    layout, seed = Layout(root), parameters.seed
    key = expressway_key(seed, xway)
    lav, cnt = load_profile()
    like = levels(day_of_week(day), busyness(seed, xway, day))
    segments = np.empty((len(SEGMENT_COLUMNS), 1440 * 200), np.int32)
    k.fill_day(segments, np.int64(day), key, like, lav, cnt)
    files, rows = [], segments.shape[1]
    blocks: list[tuple[str, tuple[str, ...], NDArray[np.int32]]] = [
        ("segments", SEGMENT_COLUMNS, segments)
    ]
    if day <= TOLL_DAYS:
        vids = np.load(layout.vids(xway))
        tolls = np.empty((len(TOLL_COLUMNS), len(vids)), np.int32)
        k.fill_tolls(tolls, np.int64(day), key, vids, exit_shares(), segments)
        blocks.append(("tolls", TOLL_COLUMNS, tolls))
        rows += len(vids)
    for table, columns, block in blocks:
        path = layout.history(table, xway, day)
        with table_writer(path, columns, "parquet") as writer:
            writer.write(block)
        files.append(file_entry(root, path))
        if parameters.format == "csv":
            files.append(_write_flat(root, layout, table, columns, block, task))
    entry = {"xway": xway, "day": day, "rows": rows, "files": files}
    return write_receipt(layout.receipt("history", xway, day), entry)


def _write_flat(
    root: Path,
    layout: Layout,
    table: str,
    columns: tuple[str, ...],
    block: NDArray[np.int32],
    task: tuple[int, int],
) -> Entry:
    """The same rows as a flat file, with XWay in the column of the paper's section 3.1.3."""
    xway, day = task
    path = layout.flat_history(table, xway, day)
    place = 2
    with_xway = np.insert(block, place, np.int32(xway), axis=0)
    named = (*columns[:place], "xway", *columns[place:])
    with table_writer(path, named, "csv") as writer:
        writer.write(with_xway)
    return file_entry(root, path)


def make_history(run: Runner, manifest: Entry) -> None:
    """Write the days that are missing, then the stores that are missing; fill in the manifest."""
    from linearroad.history.aggregation import build_stores

    layout, parameters = run.layout, run.parameters
    wanted = [(x, d) for x in range(parameters.expressways) for d in range(1, SEGMENT_DAYS + 1)]
    written = receipts(layout, "history", manifest.get("history", []))
    lacking = [task for task in wanted if not finished(layout.root, written.get(task))]
    work = Work("history", "day", "history", dict.fromkeys(lacking, 1), len(wanted) - len(lacking))
    done = run.tasks(work, functools.partial(write_day, layout.root, parameters), lacking)
    written |= {(entry["xway"], entry["day"]): entry for entry in done}
    manifest["history"] = [written[task] for task in wanted]
    manifest["totals"]["history_rows"] = sum(entry["rows"] for entry in manifest["history"])
    write_json(layout.manifest, manifest)

    stores = {entry["xway"]: entry for entry in manifest.get("store", [])}
    stale = {xway for xway, _ in lacking}
    missing = [
        xway
        for xway in range(parameters.expressways)
        if xway in stale or not finished(layout.root, stores.get(xway))
    ]
    if missing:
        build_stores(run.spark, layout.root, missing)
    manifest["store"] = [
        {
            "xway": xway,
            "files": [
                file_entry(layout.root, path) for path in sorted(layout.store(xway).glob("*.npy"))
            ],
        }
        for xway in range(parameters.expressways)
    ]
