"""The rows of the input that count as valid, by docs/linear-road-rules.md, section 1.

A row is *out of order* if a row before it in its file has a greater Time. Several files are
merged by Time, so no row of one file can make a row of another late. Of two reports of a vehicle
on one expressway in one second the first counts: in file order, and by the order of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from linearroad.generation.manifest import read_manifest
from linearroad.spark import run_tasks
from linearroad.storage import readable
from linearroad.validation.flat import FILE_BITS, write_rows
from linearroad.validation.sources import COLUMNS, REQUESTED, Sources, count, survey
from linearroad.validation.tables import Frame, Workshop, place_of
from xstream.errors import InputError

__all__ = ["COLUMNS", "Input", "input_files", "read_input"]

REPORT = """type = 0 AND time >= 0 AND vid >= 0 AND xway >= 0 AND lane BETWEEN 0 AND 4
    AND dir BETWEEN 0 AND 1 AND seg BETWEEN 0 AND 99 AND pos BETWEEN 0 AND 527999"""
REQUEST = """type IN (2, 3, 4) AND time >= 0 AND vid >= 0 AND qid >= 0 AND CASE type
    WHEN 2 THEN true
    WHEN 3 THEN xway >= 0 AND day BETWEEN 1 AND 69
    WHEN 4 THEN xway >= 0 AND sinit BETWEEN 0 AND 99 AND send BETWEEN 0 AND 99
        AND dow BETWEEN 1 AND 7 AND tod BETWEEN 1 AND 1440 END"""


@dataclass(frozen=True)
class Input:
    """The rows that count, and their number by second."""

    reports: Frame  # time, vid, spd, xway, lane, dir, seg, pos, place
    requests: Frame  # type, time, vid, xway, qid, sinit, send, dow, tod, day
    rows: int
    bad_rows: int  # cannot be parsed, of unknown type, or outside their domains
    last_second: int
    rows_by_second: dict[int, int]
    sources: Sources | None = None  # if the reports can be read without Spark


def input_files(path: Path) -> list[Path]:
    """The files of an input: the file itself, or the expressways of a generated directory."""
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if path.is_file():
        return [path]
    parameters = read_manifest(path).get("parameters", {})
    form = parameters.get("format")
    found = sorted((path / "traffic").glob(f"xway-*.{form}"))
    if len(found) != parameters.get("expressways"):
        raise InputError(
            f"{path} holds {len(found)} of {parameters.get('expressways')} expressways: "
            "finish it with `linearroad generate`"
        )
    return found


def _converted(folder: Path, task: tuple[int, Path]) -> Path:
    """Where the rows of a file are as Parquet: a flat file is converted."""
    number, path = task
    if path.suffix == ".parquet":
        return path
    target = folder / f"rows-{number}.parquet"
    write_rows(path, target, COLUMNS)
    return target


def _of_parquet(shop: Workshop, path: Path) -> Frame:
    try:
        schema = pq.read_schema(readable(path))
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a Parquet file: {error}") from error
    kinds = {name.lower(): schema.field(name).type for name in schema.names}
    for name in COLUMNS:
        if name not in kinds:
            raise InputError(f"{path} has no column {name!r}")
        if not pa.types.is_integer(kinds[name]):
            raise InputError(f"{path}: column {name!r} is {kinds[name]}, not int32")
    whole = [f"try_cast({name} AS int) AS {name}" for name in COLUMNS]
    return shop.read(path).selectExpr(*whole, "_metadata.row_index AS place")


def _paper(shop: Workshop, path: Path, number: int) -> Frame:
    return _of_parquet(shop, path)


@dataclass(frozen=True)
class Form:
    """How rows are read, and which of them are reports and requests."""

    read: Callable[[Workshop, Path, int], Frame]
    columns: tuple[str, ...]
    report: str
    request: str
    reported: tuple[str, ...]
    requested: tuple[str, ...]


PAPER = Form(
    _paper, COLUMNS, REPORT, REQUEST, (*COLUMNS[1:9], "place"),
    REQUESTED,
)  # fmt: skip


def _numbered(shop: Workshop, form: Form, path: Path, number: int) -> Frame:
    return form.read(shop, path, number).selectExpr(
        *form.columns, f"place + shiftleft({number}L, {FILE_BITS}) AS place", f"{number} AS file"
    )


def _seconds(shop: Workshop, rows: Frame, form: Form) -> Frame:
    """Per file and second: the number of rows, and the place after which rows are out of order.

    This is the first place of any greater Time. Rows outside their domains have no second.
    """
    return shop.table(
        f"""
        SELECT *, min(first) OVER (PARTITION BY file, time IS NULL ORDER BY time DESC
                      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS overtaken
        FROM (SELECT file, IF(({form.report}) OR ({form.request}), time, NULL) AS time,
                     count(*) AS counted, min(place) AS first, max(place) AS last
              FROM {{rows}} GROUP BY 1, 2)
        """,
        rows=rows,
    )


def _in_order(shop: Workshop, rows: Frame, seconds: Frame) -> Frame:
    return shop.table(
        """
        SELECT /*+ BROADCAST(late) */ rows.* FROM {rows} AS rows
        LEFT ANTI JOIN (SELECT * FROM {seconds} WHERE last > overtaken) AS late
        ON rows.file = late.file AND rows.time = late.time AND rows.place > late.overtaken
        """,
        rows=rows,
        seconds=seconds,
    )


def read_input(shop: Workshop, path: Path, before: int | None, form: Form = PAPER) -> Input:
    """The rows of an input that count, of the seconds before `before`."""
    paths = input_files(path)
    sources = None
    if form is PAPER:
        convert = partial(_converted, shop.subfolder("rows"))
        paths = run_tasks(shop.spark, convert, list(enumerate(paths)))
        sources = survey(shop.spark, paths, before)
    if sources is not None:
        rows = _of_plain(shop, paths)  # one plan, whatever their number
    else:
        files = [_numbered(shop, form, file, n) for n, file in enumerate(paths)]
        rows = reduce(lambda one, other: one.unionAll(other), files)
    if before is not None:
        rows = rows.where(f"time IS NULL OR time < {before}")
    if sources is not None and (read := _without_spark(shop, rows, sources)) is not None:
        return read
    return _with_spark(shop, rows, form)


def _of_plain(shop: Workshop, paths: Sequence[Path]) -> Frame:
    """The rows of files whose columns are all int32."""
    table = shop.read(*paths).selectExpr(
        *COLUMNS, f"_metadata.row_index + {place_of(paths)} AS place"
    )
    return table.selectExpr("*", f"CAST(shiftright(place, {FILE_BITS}) AS int) AS file")


def _with_spark(shop: Workshop, rows: Frame, form: Form) -> Input:
    """The same with Spark's own sorting: rows may be out of order, and files share expressways."""
    seconds = shop.keep(_seconds(shop, rows, form))
    (found,) = shop.rows(
        seconds.selectExpr(
            "coalesce(sum(IF(time IS NULL, counted, 0L)), 0L) AS bad",
            "coalesce(bool_or(time IS NOT NULL AND last > overtaken), false) AS disorder",
        )
    )
    if found["disorder"]:
        rows = _in_order(shop, rows, seconds)
    counts = shop.rows(
        shop.table(
            "SELECT time, sum(counted) AS counted FROM {seconds} WHERE time IS NOT NULL GROUP BY 1",
            seconds=seconds,
        )
    )
    rate = {row["time"]: row["counted"] for row in sorted(counts, key=lambda row: row["time"])}
    return Input(
        reports=rows.where(form.report).selectExpr(*form.reported),
        requests=shop.keep(rows.where(form.request).selectExpr(*form.requested)),
        rows=sum(rate.values()),
        bad_rows=found["bad"],
        last_second=max(rate, default=0),
        rows_by_second=rate,
    )


def _without_spark(shop: Workshop, rows: Frame, sources: Sources) -> Input | None:
    folder = shop.folder / "requests"
    counted = count(shop.spark, sources, folder)
    if counted is None:
        return None
    return Input(
        reports=rows.where(REPORT).selectExpr(*PAPER.reported),
        requests=shop.read(folder),
        rows=sum(counted.rate.values()),
        bad_rows=counted.bad_rows,
        last_second=max(counted.rate, default=0),
        rows_by_second=counted.rate,
        sources=sources,
    )
