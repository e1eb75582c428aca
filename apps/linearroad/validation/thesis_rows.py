"""Input by the rules of the thesis: rows of nine fields, or the paper's rows translated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from linearroad.storage import readable
from linearroad.validation import rows as paper
from linearroad.validation.flat import PLACE, lines_of, write_rows
from linearroad.validation.tables import Frame, Workshop
from xstream.errors import InputError

__all__ = ["COLUMNS", "REPORT", "REQUEST", "read"]

COLUMNS = ("type", "time", "vid", "speed", "xway", "mile", "offset", "lane", "dir")
REPORT = """type = 0 AND time >= 0 AND vid >= 0 AND xway >= 0 AND mile BETWEEN 0 AND 99
    AND offset BETWEEN 0 AND 1759 AND lane BETWEEN 0 AND 7 AND dir = lane DIV 4"""
# The fields of a request: QID in `speed`, Minit in `mile`, Mend in `offset`, DOW in `lane` and TOD
# in `dir`.
REQUEST = """type IN (2, 3, 4) AND time >= 0 AND vid >= 0 AND speed >= 0 AND CASE type
    WHEN 2 THEN true
    WHEN 3 THEN xway >= 0
    WHEN 4 THEN xway >= 0 AND mile BETWEEN 0 AND 99 AND offset BETWEEN 0 AND 99
        AND lane BETWEEN 0 AND 6 AND dir BETWEEN 0 AND 1439 END"""

_GOOD = f"(({paper.REPORT}) OR ({paper.REQUEST.replace('AND day BETWEEN 1 AND 69', '')}))"
_EAST = "(1 - dir)"
_TRANSLATED = {
    "type": "type",
    "time": "time",
    "vid": "vid",
    "speed": "IF(type = 0, spd, qid)",
    "xway": "xway",
    "mile": "IF(type = 0, seg, sinit)",
    "offset": "IF(type = 0, CAST((pos % 5280) DIV 3 AS int), send)",
    "lane": f"CASE WHEN type <> 0 THEN dow - 1 WHEN lane IN (0, 4) THEN 7 * {_EAST} "
    f"ELSE lane + 3 * {_EAST} END",
    "dir": f"IF(type = 0, {_EAST}, tod - 1)",
}


def read(shop: Workshop, path: Path, number: int) -> Frame:
    """The nine columns and the place of every row; one that cannot be used is null in all."""
    names = _names(path)
    if path.suffix == ".parquet":
        table = shop.read(path)
        table = table.selectExpr(*names, "_metadata.row_index AS place")
    else:
        target = shop.folder / f"rows-{number}.parquet"
        _write(path, target, names)
        table = shop.read(target)
    if names == COLUMNS:
        return table
    told = (f"IF({_GOOD}, {value}, NULL) AS {name}" for name, value in _TRANSLATED.items())
    return table.selectExpr(*told, PLACE)


def _names(path: Path) -> tuple[str, ...]:
    """The columns of a file: nine, or the paper's fifteen."""
    if path.suffix == ".bin":
        return COLUMNS
    if path.suffix == ".parquet":
        try:
            present = {name.lower() for name in pq.read_schema(readable(path)).names}
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path} is not a Parquet file: {error}") from error
        names = paper.COLUMNS if {"seg", "pos"} <= present else COLUMNS
        missing = [name for name in names if name not in present]
        if missing:
            raise InputError(f"{path} has no column {missing[0]!r}")
        return names
    for lines in lines_of(path):
        for line in lines:
            fields = line.count(b",") + 1
            if fields in (len(COLUMNS), len(paper.COLUMNS)):
                return COLUMNS if fields == len(COLUMNS) else paper.COLUMNS
    return COLUMNS


def _write(path: Path, target: Path, names: tuple[str, ...]) -> None:
    if path.suffix != ".bin":
        write_rows(path, target, names)
        return
    data = np.fromfile(path, "<i4")
    table = data[: len(data) // len(names) * len(names)].reshape(-1, len(names))
    columns = {name: table[:, i].astype(np.int32) for i, name in enumerate(names)}
    pq.write_table(pa.table({**columns, PLACE: np.arange(len(table))}), target)
