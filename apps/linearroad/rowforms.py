"""The forms of input rows, and how each becomes the fifteen columns that the query takes.

The paper's rows have fifteen fields. Those of the thesis have nine, in which a request uses the
fields of a report for other values. The thesis' rules also take the paper's rows, translated as
docs/linear-road-thesis.md describes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.operators.check import fault, stream_times
from linearroad.schema import (
    ASKS_BALANCE,
    ASKS_TRAVEL_TIME,
    DAY,
    DIR,
    DOW,
    FIELDS,
    INPUT_COLUMNS,
    LANE,
    PAPER_ROWS,
    POS,
    QID,
    REPORTS,
    SEG,
    SEND,
    SINIT,
    SPD,
    THESIS_COLUMNS,
    THESIS_ROWS,
    TIME,
    TOD,
    TRANSLATED_ROWS,
    TYPE,
    VID,
    XWAY,
)  # fmt: skip

__all__ = [
    "PAPER",
    "THESIS",
    "TRANSLATED",
    "Columns",
    "RowForm",
    "form_of_flat",
    "form_of_names",
    "nine_fields",
    "papers_reports",
]

#: The columns of some rows.
Columns = tuple[NDArray[np.int32], ...]

FEET_A_MILE, FEET_A_YARD = 5280, 3
DETECTED_BYTES = 1 << 16  # of a flat file, to count the fields of its rows


@xs.compiled
def fifteen_of_nine(rows):  # type: ignore[no-untyped-def]
    """The thesis' rows, an array of nine columns, in fifteen columns; fields without use are -1."""
    wide = np.full((FIELDS, rows.shape[1]), -1, np.int32)
    for i in range(rows.shape[1]):
        wide[TYPE, i], wide[TIME, i], wide[VID, i] = rows[0, i], rows[1, i], rows[2, i]
        wide[XWAY, i] = rows[4, i]
        if rows[0, i] == REPORTS:
            wide[SPD, i], wide[SEG, i], wide[POS, i] = rows[3, i], rows[5, i], rows[6, i]
            wide[LANE, i], wide[DIR, i] = rows[7, i], rows[8, i]
        else:
            wide[QID, i], wide[SINIT, i], wide[SEND, i] = rows[3, i], rows[5, i], rows[6, i]
            wide[DOW, i], wide[TOD, i] = rows[7, i], rows[8, i]
    return wide


@xs.compiled
def thesis_of_paper(rows):  # type: ignore[no-untyped-def]
    """The paper's rows, an array of fifteen columns, as rows of the thesis.

    A row outside the paper's domains gets the negative reason as its type. Day has no domain here:
    the thesis' daily expenditure is today's.
    """
    made = rows.copy()
    for i in range(rows.shape[1]):
        row = rows[:, i].copy()
        row[DAY] = 1
        why = fault(row, PAPER_ROWS)
        if why != 0:
            made[TYPE, i] = -why
        elif row[TYPE] == REPORTS:
            east = 1 - row[DIR]
            made[DIR, i] = east
            made[POS, i] = row[POS] % FEET_A_MILE // FEET_A_YARD
            is_ramp = row[LANE] == 0 or row[LANE] == 4
            made[LANE, i] = 7 * east if is_ramp else row[LANE] + 3 * east
        else:
            made[DOW, i], made[TOD, i] = row[DOW] - 1, row[TOD] - 1
    return made


@xs.compiled
def nine_of_fifteen(rows):  # type: ignore[no-untyped-def]
    """Rows of the thesis in fifteen columns as nine; fields without use are -1."""
    narrow = np.full((9, rows.shape[1]), -1, np.int32)
    for i in range(rows.shape[1]):
        kind = rows[TYPE, i]
        narrow[0, i], narrow[1, i], narrow[2, i] = kind, rows[TIME, i], rows[VID, i]
        narrow[3, i] = rows[SPD, i] if kind == REPORTS else rows[QID, i]
        if kind != ASKS_BALANCE:
            narrow[4, i] = rows[XWAY, i]
        if kind == REPORTS:
            narrow[5, i], narrow[6, i] = rows[SEG, i], rows[POS, i]
            narrow[7, i], narrow[8, i] = rows[LANE, i], rows[DIR, i]
        elif kind == ASKS_TRAVEL_TIME:
            narrow[5, i], narrow[6, i] = rows[SINIT, i], rows[SEND, i]
            narrow[7, i], narrow[8, i] = rows[DOW, i], rows[TOD, i]
    return narrow


def nine_fields(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """The paper's rows, an array of fifteen columns, as nine-field rows of the thesis."""
    narrow: NDArray[np.int32] = nine_of_fifteen(thesis_of_paper(np.ascontiguousarray(rows)))
    return narrow


def papers_reports(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Nine-field rows as the paper's first nine columns, as far as they say; ramps are lane 0."""
    kind, time, vid, speed, xway, mile, offset, lane, direction = rows
    travel = np.where(lane > 3, lane - 3, lane)
    ramp = (lane == 0) | (lane == 7)
    pos = mile * FEET_A_MILE + offset * FEET_A_YARD
    seen = (kind, time, vid, speed, xway, np.where(ramp, 0, travel), 1 - direction, mile, pos)
    return np.stack(seen).astype(np.int32)


def _as_they_are(columns: Columns) -> Columns:
    return columns


def _converted(convert: Callable[[NDArray[np.int32]], NDArray[np.int32]]) -> Any:
    return lambda columns: tuple(convert(np.stack(columns)))


@dataclass(frozen=True)
class RowForm:
    """The names of the fields of a row, and what the query takes its columns for."""

    names: tuple[str, ...]
    #: The argument `form` of the operator `check`.
    number: int
    #: From the columns of a file to the fifteen of the query.
    columns: Callable[[Columns], Columns] = _as_they_are

    def times(self, columns: Columns, clock: int) -> NDArray[np.int64]:
        """The second in which each row arrives, after those that advanced the clock to `clock`."""
        found: NDArray[np.int64] = stream_times(columns, clock, self.number)
        return found


PAPER = RowForm(INPUT_COLUMNS, PAPER_ROWS)
THESIS = RowForm(THESIS_COLUMNS, THESIS_ROWS, _converted(fifteen_of_nine))
TRANSLATED = RowForm(INPUT_COLUMNS, TRANSLATED_ROWS, _converted(thesis_of_paper))


def form_of_names(names: set[str], rules: str) -> RowForm:
    """The form of a Parquet file with these columns."""
    if rules != "thesis":
        return PAPER
    return TRANSLATED if {"seg", "pos"} <= names else THESIS


def form_of_flat(beginning: bytes) -> RowForm:
    """The form of a flat file for the thesis' rules, by its first line with 9 or 15 fields."""
    for line in beginning.split(b"\n"):
        fields = line.count(b",") + 1
        if fields in (len(PAPER.names), len(THESIS.names)):
            return TRANSLATED if fields == len(PAPER.names) else THESIS
    return THESIS
