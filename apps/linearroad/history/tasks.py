"""History, one task per expressway and day, and the compact store that Spark aggregates from it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from linearroad.files import load_array, table_writer
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import (
    Entry,
    file_entry,
    finished,
    read_json,
    write_json,
    write_receipt,
)
from linearroad.generation.parameters import TrafficParameters
from linearroad.generation.progress import Work
from linearroad.generation.runner import Runner
from linearroad.history import _kernels as k
from linearroad.history.shape import day_of_week, levels, load_profile
from linearroad.spark import run_tasks
from linearroad.traffic._kernels_cars import mix, unit
from linearroad.traffic.demand import exit_shares
from linearroad.traffic.simulation import expressway_key

__all__ = ["SEGMENT_COLUMNS", "TOLL_COLUMNS", "make_history", "write_day"]

SEGMENT_COLUMNS = ("day", "min", "dir", "seg", "lav", "cnt", "toll")
TOLL_COLUMNS = ("vid", "day", "tolls")
SEGMENT_DAYS, TOLL_DAYS = 70, 69
SALT_DAY = 0xDA7
DAYS_PER_TASK = 7
Result = TypeVar("Result")


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
        vids = load_array(layout.vids(xway))
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


def missing_days(root: Path, listed: dict[int, Entry], xway: int) -> list[int]:
    """The days of an expressway that are not on storage in full length."""
    known = {(entry["xway"], entry["day"]): entry for entry in _known_days(root, listed, xway)}
    days = range(1, SEGMENT_DAYS + 1)
    return [day for day in days if not finished(root, known.get((xway, day)))]


def _known_days(root: Path, listed: dict[int, Entry], xway: int) -> list[Entry]:
    """The entries of days, from the list of the expressway and from receipts of its tasks."""
    layout = Layout(root)
    known: dict[int, Entry] = {}
    if xway in listed and finished(root, listed[xway]):
        known = {entry["day"]: entry for entry in read_json(layout.history_days(xway))["days"]}
    for path in layout.work.glob(f"history-{xway:05d}-*.json"):
        entry = read_json(path)
        known[entry["day"]] = entry
    return [known[day] for day in sorted(known)]


def write_days(root: Path, parameters: TrafficParameters, task: tuple[int, list[int]]) -> None:
    """Write some days of an expressway; each of them has a receipt."""
    xway, days = task
    for day in days:
        write_day(root, parameters, (xway, day))


def list_days(root: Path, listed: dict[int, Entry], xway: int) -> Entry:
    """Write the list of an expressway's days; returns its entry."""
    days, path = _known_days(root, listed, xway), Layout(root).history_days(xway)
    write_json(path, {"days": days})
    rows = sum(entry["rows"] for entry in days)
    return {"xway": xway, "rows": rows, **file_entry(root, path)}


def list_store(root: Path, xway: int) -> Entry:
    """The entry of an expressway's store, with the checksums of its files."""
    paths = sorted(Layout(root).store(xway).glob("*.npy"))
    return {"xway": xway, "files": [file_entry(root, path) for path in paths]}


def make_history(run: Runner, manifest: Entry) -> None:
    """Write the days that are missing, then the stores that are missing; fill in the manifest.

    What is known of each day stays with the workers, in one list per expressway.
    """
    from linearroad.history.aggregation import build_stores

    root, parameters = run.layout.root, run.parameters
    everyone = range(parameters.expressways)
    lists = {entry["xway"]: entry for entry in manifest.get("history", []) if "day" not in entry}

    def each(function: Callable[[int], Result], xways: Sequence[int]) -> list[Result]:
        return run_tasks(run.spark, function, xways, run.partitions)

    missing = each(functools.partial(missing_days, root, lists), everyone)
    lacking = {x: days for x, days in zip(everyone, missing, strict=True) if days}
    tasks = [
        (x, days[at : at + DAYS_PER_TASK])
        for x, days in lacking.items()
        for at in range(0, len(days), DAYS_PER_TASK)
    ]
    sizes: dict[tuple[int, ...], int] = {(x, day): 1 for x, days in tasks for day in days}
    before = SEGMENT_DAYS * len(everyone) - len(sizes)
    work = Work("history", "day", "history", sizes, before)
    run.tasks(work, functools.partial(write_days, root, parameters), tasks)
    unlisted = [x for x in everyone if x in lacking or x not in lists]
    done = each(functools.partial(list_days, root, lists), unlisted)
    lists |= {entry["xway"]: entry for entry in done}
    manifest["history"] = [lists[x] for x in everyone]
    manifest["totals"]["history_rows"] = sum(entry["rows"] for entry in manifest["history"])
    write_json(run.layout.manifest, manifest)

    stores = {entry["xway"]: entry for entry in manifest.get("store", [])}
    stale = [x for x in everyone if x in lacking or not finished(root, stores.get(x))]
    if stale:
        build_stores(run.spark, root, stale)
    done = each(functools.partial(list_store, root), stale)
    stores |= {entry["xway"]: entry for entry in done}
    manifest["store"] = [stores[x] for x in everyone]
