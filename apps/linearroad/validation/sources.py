"""Inputs that are read with pyarrow alone: Parquet of int32 columns, in order of Time.

These are most inputs, and all flat files once they are converted. Spark only distributes the
tasks: each reads some row groups, or all reports of a share of a file's vehicles, so that nothing
is shuffled. Any other input (rows out of order, other types of columns, one expressway in several
files) returns None here, and is read by Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from linearroad.files import load_array, save_array
from linearroad.spark import run_tasks
from linearroad.storage import make_folder, readable
from linearroad.validation.chains import follow_paper
from linearroad.validation.flat import PLACE, written

__all__ = [
    "COLUMNS",
    "REQUESTED",
    "Counted",
    "Sources",
    "count",
    "follow_shares",
    "is_plain",
    "survey",
]

COLUMNS = (
    "type", "time", "vid", "spd", "xway", "lane", "dir", "seg", "pos", "qid", "sinit", "send",
    "dow", "tod", "day",
)  # fmt: skip
REPORTED = COLUMNS[:9]
REQUESTED = ("type", "time", "vid", "xway", "qid", "sinit", "send", "dow", "tod", "day")
ROWS_PER_SHARE = 3_000_000  # of which a task needs about 200 bytes each
GROUPS_PER_TASK = 8
PARTS_PER_TASK = 500  # whose counts a task adds up
MOST_SECONDS = 10_000_000  # of an array with a count for each

Columns = dict[str, NDArray[np.int32]]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Sources:
    """Files in order of Time, each with its own expressways; rows from `before` on are ignored."""

    files: tuple[Path, ...]
    before: int | None
    #: Row groups and rows of each file.
    groups: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Counted:
    """What one reading of all files finds."""

    rate: dict[int, int]  # valid rows by second
    bad_rows: int


@dataclass(frozen=True)
class _Part:
    """Some row groups of a file: their first and last second (-1: no rows), and expressways."""

    first: int
    last: int
    bad_rows: int
    in_order: bool
    xways: frozenset[int]


def is_plain(path: Path) -> bool:
    """Whether a Parquet file has all columns as int32."""
    schema = pq.read_schema(readable(path))
    return all(name in schema.names and schema.field(name).type == pa.int32() for name in COLUMNS)


def _size(path: Path) -> tuple[int, int] | None:
    """The row groups and rows of a plain file."""
    try:
        if not is_plain(path):
            return None
        metadata = pq.read_metadata(readable(path))
    except (OSError, pa.ArrowException):
        return None  # is reported where all files are read
    return metadata.num_row_groups, metadata.num_rows


def survey(spark: Any, paths: Sequence[Path], before: int | None) -> Sources | None:
    """The files, with their sizes; None if any of them has other columns."""
    sizes = run_tasks(spark, _size, list(paths))
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    groups, rows = (tuple(each) for each in zip(*known, strict=True))
    return Sources(tuple(paths), before, groups, rows)


def _between(values: NDArray[np.int32], low: int, high: int) -> Flags:
    return (values >= low) & (values <= high)


def _reports(column: Columns) -> Flags:
    """By docs/linear-road-rules.md, section 1.4, as `rows.REPORT`."""
    good: Flags = (column["type"] == 0) & (column["time"] >= 0) & (column["vid"] >= 0)
    good &= (column["xway"] >= 0) & _between(column["lane"], 0, 4) & _between(column["dir"], 0, 1)
    good &= _between(column["seg"], 0, 99) & _between(column["pos"], 0, 527_999)
    return good


def _requests(column: Columns) -> Flags:
    """As `rows.REQUEST`."""
    kind = column["type"]
    good: Flags = _between(kind, 2, 4) & (column["time"] >= 0) & (column["vid"] >= 0)
    good &= column["qid"] >= 0
    on_way = column["xway"] >= 0
    journey = on_way & _between(column["sinit"], 0, 99) & _between(column["send"], 0, 99)
    journey &= _between(column["dow"], 1, 7) & _between(column["tod"], 1, 1440)
    spent = on_way & _between(column["day"], 1, 69)
    good &= (kind == 2) | ((kind == 3) & spent) | ((kind == 4) & journey)
    return good


def _groups(
    path: Path, names: Sequence[str], groups: Sequence[int], before: int | None
) -> Iterator[Columns]:
    """Row groups as numpy columns; a row that cannot be parsed is -1 in all of them."""
    with pq.ParquetFile(readable(path), page_checksum_verification=True) as file:
        for group in groups:
            table = file.read_row_group(group, columns=list(names), use_threads=False)
            column = {name: pc.fill_null(table[name], -1).to_numpy() for name in names}
            if before is not None:
                kept = column["time"] < before
                column = {name: values[kept] for name, values in column.items()}
            yield column


def _count_part(task: tuple[Path, range, Path], before: int | None) -> _Part:
    """Count some row groups, and write their requests to a file and their rows by second beside it.

    The driver would otherwise collect a number for each second of each expressway.
    """
    path, groups, target = task
    times, found, xways, bad, last, in_order = [], [], set[int](), 0, -1, True
    for column in _groups(path, COLUMNS, groups, before):
        reports, requests = _reports(column), _requests(column)
        good = reports | requests
        time = column["time"][good]
        bad += len(good) - len(time)
        if len(time):
            in_order &= bool(last <= time[0]) and bool((time[1:] >= time[:-1]).all())
            last = int(time[-1])
        times.append(time)
        xways.update(pc.unique(pa.array(column["xway"][reports])).to_pylist())
        found.append({name: column[name][requests] for name in REQUESTED})
    joined = {name: np.concatenate([each[name] for each in found]) for name in REQUESTED}
    with written(target) as requests:
        pq.write_table(pa.table(joined), requests)
    time = np.concatenate(times)
    first = int(time.min(initial=np.iinfo(np.int32).max))
    in_order &= len(time) == 0 or int(time.max()) - first < MOST_SECONDS
    by_second = np.bincount(time - first) if len(time) and in_order else np.zeros(0, np.int64)
    seconds = np.flatnonzero(by_second)
    save_array(_counts_beside(target), np.stack((first + seconds, by_second[seconds])))
    last = first + len(by_second) - 1 if len(by_second) else -1
    return _Part(first, last, bad, in_order, frozenset(xways))


def _counts_beside(target: Path) -> Path:
    """The rows by second of a part; not in the folder of requests, which Spark reads."""
    return target.parent.with_name("counts") / f"{target.stem}.npy"


def _added(targets: Sequence[Path]) -> dict[int, int]:
    """The rows by second of some parts."""
    rate = Counter[int]()
    for target in targets:
        seconds, counts = load_array(_counts_beside(target)).tolist()
        rate.update(dict(zip(seconds, counts, strict=True)))
    return dict(rate)


def count(spark: Any, sources: Sources, folder: Path) -> Counted | None:
    """Count the rows by second and write all requests into `folder`, if the files allow that."""
    make_folder(folder)
    tasks = [
        (path, range(start, min(start + GROUPS_PER_TASK, groups)), folder / f"{n}-{start}.parquet")
        for n, (path, groups) in enumerate(zip(sources.files, sources.groups, strict=True))
        for start in range(0, max(groups, 1), GROUPS_PER_TASK)
    ]
    if any(not len(groups) for _, groups, _ in tasks):
        return None
    parts = run_tasks(spark, partial(_count_part, before=sources.before), tasks)
    last: dict[Path, int] = {}
    owner: dict[int, Path] = {}
    for (path, _, _), part in zip(tasks, parts, strict=True):
        if not part.in_order or (part.last >= 0 and part.first < last.get(path, 0)):
            return None
        if any(owner.setdefault(xway, path) != path for xway in part.xways):
            return None
        if part.last >= 0:
            last[path] = part.last
    targets = [target for _, _, target in tasks]
    chunks = [targets[at : at + PARTS_PER_TASK] for at in range(0, len(targets), PARTS_PER_TASK)]
    rate = Counter[int]()
    for found in [_added(chunks[0])] if len(chunks) == 1 else run_tasks(spark, _added, chunks):
        rate.update(found)
    return Counted(dict(sorted(rate.items())), sum(part.bad_rows for part in parts))


def follow_shares(spark: Any, sources: Sources, folder: Path) -> None:
    """Write the rows of `chains.SCHEMA` for all reports into `folder`."""
    make_folder(folder)
    tasks = []
    for path, rows in zip(sources.files, sources.rows, strict=True):
        shares = -(-max(rows, 1) // ROWS_PER_SHARE)
        tasks += [(path, share, shares) for share in range(shares)]
    named = [(*task, folder / f"{n}.parquet") for n, task in enumerate(tasks)]
    run_tasks(spark, partial(_follow_share, before=sources.before), named)


def _follow_share(task: tuple[Path, int, int, Path], before: int | None) -> None:
    path, share, shares, target = task
    followed = list(follow_paper(_share(path, share, shares, before)))
    if followed:
        with written(target) as file:
            pq.write_table(pa.Table.from_batches(followed), file, compression="zstd")


def _share(path: Path, share: int, shares: int, before: int | None) -> Iterator[Any]:
    """The reports of every `shares`-th vehicle of a file."""
    place = 0
    groups = range(pq.read_metadata(readable(path)).num_row_groups)
    for column in _groups(path, REPORTED, groups, before):
        mine = np.flatnonzero(_reports(column) & (column["vid"] % shares == share))
        kept = {name: column[name][mine] for name in REPORTED}
        yield pa.record_batch({**kept, PLACE: mine + place})
        place += len(column["type"])
