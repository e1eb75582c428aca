"""Daily expenditures and travel times, from the tables of history themselves.

A generated directory contains them as Parquet beside the compact store of the engine. The store is
not read here, so a store that differs from the tables is noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from linearroad.generation.manifest import read_manifest
from linearroad.storage import readable, spark_uri
from linearroad.validation.tables import Frame, Workshop
from xstream.errors import InputError

__all__ = ["History", "Journeys", "expenditures", "find_history", "travel_times"]

TOLLS = ("vid", "day", "xway", "tolls")
SEGMENTS = ("day", "min", "xway", "dir", "seg", "lav", "cnt", "toll")
NEVER = 1e-9  # far less than any two different means or times can be apart
SHAPE = (2, 100, 1440)  # directions, segments and minutes
CELLS = 2 * 100 * 1440
JOURNEY = "time int, qid int, traveltime int, toll bigint"
SPENT = "time int, qid int, balance bigint"
TASKS_PER_SLOT = 8
_ANSWERED = pa.schema([
    ("time", pa.int32()), ("qid", pa.int32()), ("traveltime", pa.int32()), ("toll", pa.int64()),
])  # fmt: skip


@dataclass(frozen=True)
class History:
    """The two tables; None where a run had none, folders of days of a generated directory."""

    tolls: Frame | Path | None
    segments: Frame | Path | None


def find_history(
    shop: Workshop, directory: Path | None, tolls: Path | None, segments: Path | None
) -> History:
    """The tables that a run was given by the same options."""
    days, folder = None, None
    if directory is not None:
        days = _generated(directory, "tolls")
        folder = _generated(directory, "segments")
    return History(
        days if tolls is None else _table(shop, tolls, TOLLS),
        folder if segments is None else _table(shop, segments, SEGMENTS),
    )


def _generated(directory: Path, name: str) -> Path:
    read_manifest(directory)
    folder = directory / "history" / name
    if not (folder / "xway=0" / "day-01.parquet").is_file():
        raise InputError(f"{directory} has no history: generate it with --history")
    return folder


def _table(shop: Workshop, path: Path, columns: tuple[str, ...]) -> Frame:
    if not path.is_file():
        raise InputError(f"{path} does not exist")
    if path.suffix == ".parquet":
        try:
            present = [name.lower() for name in pq.read_schema(readable(path)).names]
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path} is not a Parquet file: {error}") from error
        missing = [name for name in columns if name not in present]
        if missing:
            raise InputError(f"{path} has no column {missing[0]!r}")
        return shop.read(path).select(*columns)
    schema = ", ".join(f"{name} int" for name in columns)
    return shop.spark.read.option("mode", "FAILFAST").csv(spark_uri(path), schema=schema)


def expenditures(shop: Workshop, requests: Frame, tolls: Frame | Path | None) -> Frame:
    """`time, qid, balance` from TollHistory; 0 without a row."""
    asked = requests.where("type = 3")
    if tolls is None:
        return asked.selectExpr("time", "qid", "0L AS balance")
    if isinstance(tolls, Path):
        asked = asked.select("time", "qid", "vid", "xway", "day")
        return _by_file(shop, asked, ("xway", "day"), partial(_spent, folder=tolls), SPENT)
    # The table is large and few of its rows are needed, so they are selected first.
    found = shop.table(
        """
        SELECT /*+ BROADCAST(a) */ a.vid, a.day, a.xway, max(CAST(t.tolls AS bigint)) AS balance
        FROM {tolls} AS t JOIN (SELECT DISTINCT vid, day, xway FROM {asked}) AS a
        ON a.vid = t.vid AND a.day = t.day AND a.xway = t.xway GROUP BY a.vid, a.day, a.xway
        """,
        tolls=tolls,
        asked=asked,
    )
    return shop.table(
        """
        SELECT a.time, a.qid, coalesce(f.balance, 0L) AS balance
        FROM {asked} AS a LEFT JOIN {found} AS f USING (vid, day, xway)
        """,
        asked=asked,
        found=found,
    )


@dataclass(frozen=True)
class Journeys:
    """How a rule set computes journeys: cars without a toll, the toll per square of a car above
    them, and segments beyond the last one that are included (0 or 1)."""

    free_cars: int = 50
    base_toll: int = 2
    beyond: int = 0


def travel_times(
    shop: Workshop, requests: Frame, segments: Frame | Path | None, how: Journeys | None = None
) -> Frame:
    """`time, qid, traveltime, toll`; -1 and -1 without any history."""
    asked = requests.where("type = 4")
    if segments is None:
        return asked.selectExpr("time", "qid", "-1 AS traveltime", "-1L AS toll")
    rules = how or Journeys()
    journeys = asked.select("time", "qid", "xway", "sinit", "send", "dow", "tod")
    if isinstance(segments, Path):
        function = partial(_of_days, folder=segments, rules=rules)
        return _by_file(shop, journeys, ("xway", "dow"), function, JOURNEY)
    # Ten days of a segment and minute are averaged where the journeys are computed: grouping them
    # here would shuffle the largest table of all twice.
    known = shop.table(
        """
        SELECT s.xway, CAST((4 - s.day + 70) % 7 + 1 AS int) AS dow,
               CAST((s.dir * 100 + s.seg) * 1440 + s.min - 1 AS int) AS cell, s.lav, s.cnt
        FROM {segments} AS s WHERE s.xway IN (SELECT xway FROM {asked})
        """,
        segments=segments,
        asked=asked,
    )
    return (
        journeys.groupBy("xway", "dow")
        .cogroup(known.groupBy("xway", "dow"))
        .applyInArrow(lambda asked, known: _travel(asked, known, rules), schema=JOURNEY)
    )


def _by_file(
    shop: Workshop, asked: Frame, keys: tuple[str, str], function: Callable[[Any], Any], schema: str
) -> Frame:
    """Send requests to tasks that read the files of their expressway and day; the files, which are
    far larger, are not sent, and nothing is collected."""
    # A number of its own keeps Spark from joining partitions that are small, but slow.
    spread = asked.repartition(TASKS_PER_SLOT * shop.slots, *keys)
    # Spark looks at the parameters of what it calls.
    return spread.groupBy(*keys).applyInArrow(lambda table: function(table), schema=schema)


def _spent(asked: pa.Table, folder: Path) -> pa.Table:
    """The expenditures of one expressway and day, from its file."""
    xway, day = asked["xway"][0].as_py(), asked["day"][0].as_py()
    file = folder / f"xway={xway}" / f"day-{day:02d}.parquet"
    balance = np.zeros(len(asked), np.int64)
    if file.exists():
        known = _read_day(file, ("vid", "day", "tolls"))
        order = np.argsort(known["vid"], kind="stable")
        vids, tolls = known["vid"][order], known["tolls"][order]
        wanted = asked["vid"].to_numpy()
        place = np.minimum(np.searchsorted(vids, wanted), max(len(vids) - 1, 0))
        if len(vids):
            balance = np.where(vids[place] == wanted, tolls[place], 0).astype(np.int64)
    return pa.table({"time": asked["time"], "qid": asked["qid"], "balance": balance})


def _read_day(file: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """The columns of a day, one of which is `day`."""
    table = pq.ParquetFile(readable(file), page_checksum_verification=True).read(list(names))
    column = {name: table[name].to_numpy() for name in names}
    if (column["day"] != int(file.stem.removeprefix("day-"))).any():
        raise InputError(f"{file} has rows of another day")
    return column


def _of_days(asked: pa.Table, folder: Path, rules: Journeys) -> pa.Table:
    """The journeys on one expressway and day of the week, from its ten files."""
    xway, dow = asked["xway"][0].as_py(), asked["dow"][0].as_py()
    days = [day for day in range(1, 71) if (4 - day + 70) % 7 + 1 == dow]
    files = [folder / f"xway={xway}" / f"day-{day:02d}.parquet" for day in days]
    cells: list[NDArray[Any]] = [np.zeros(0, np.int32)]
    lavs, cnts = list(cells), list(cells)
    for file in files:
        if not file.exists():
            continue
        column = _read_day(file, ("day", "dir", "seg", "min", "lav", "cnt"))
        cells.append((column["dir"] * 100 + column["seg"]) * 1440 + column["min"] - 1)
        lavs.append(column["lav"])
        cnts.append(column["cnt"])
    joined = {"cell": cells, "lav": lavs, "cnt": cnts}
    known = pa.table({name: np.concatenate(parts) for name, parts in joined.items()})
    return _travel(asked, known, rules).cast(_ANSWERED)


def _means(known: pa.Table) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean Lav and Cnt of every direction, segment and minute; 0 without any day."""
    cell = known["cell"].to_numpy()
    days = np.maximum(np.bincount(cell, minlength=CELLS), 1)
    lav, cnt = (
        (np.bincount(cell, known[name].to_numpy(), CELLS) / days).reshape(SHAPE)
        for name in ("lav", "cnt")
    )
    return lav, cnt


def _travel(asked: pa.Table, known: pa.Table, rules: Journeys) -> pa.Table:
    """All journeys of one expressway on one day of the week, segment by segment."""
    lav, cnt = _means(known)
    journeys = {name: asked[name].to_numpy() for name in asked.column_names}
    sinit, send, tod = journeys["sinit"], journeys["send"], journeys["tod"]
    direction = np.where(sinit <= send, 0, 1)
    length = np.abs(send - sinit) + rules.beyond
    gone, toll = np.zeros(len(tod)), np.zeros(len(tod), np.int64)  # minutes, cents
    for step in range(int(length.max(initial=0))):
        here = np.flatnonzero(step < length)
        way = direction[here]
        seg = sinit[here] + np.where(way == 0, step, -step)
        minute = (np.floor(tod[here] + gone[here] + NEVER).astype(np.int64) - 1) % 1440
        speed, vehicles = lav[way, seg, minute], np.floor(cnt[way, seg, minute] + NEVER)
        gone[here] += 60.0 / np.maximum(speed, 1.0)
        paid = (np.floor(speed + NEVER) < 40) & (vehicles > rules.free_cars)
        toll[here] += np.where(paid, rules.base_toll * (vehicles - rules.free_cars) ** 2, 0).astype(
            np.int64
        )
    return pa.table(
        {
            "time": journeys["time"],
            "qid": journeys["qid"],
            "traveltime": np.floor(60 * gone + 0.5 + NEVER).astype(np.int32),
            "toll": toll,
        }
    )
