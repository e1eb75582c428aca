"""The seconds in which rows arrive, against the rule applied row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from linearroad.operators.check import fault, stream_times
from linearroad.schema import DIR, FIELDS, LANE, PAPER_ROWS, THESIS_ROWS, TIME, TRANSLATED_ROWS

VALUES = st.sampled_from([0, 1, 1, 1, 2, 3, 7, 50, 99, 100, 1440, -1, 528_000, -(2**31), 2**31 - 1])
TYPES = st.sampled_from([0, 0, 0, 0, 2, 3, 4, 1, 5, -1, -9])


def one_by_one(columns: tuple, clock: int, form: int) -> list[int]:
    found = []
    for row in zip(*columns, strict=True):
        if row[TIME] > clock and fault.py_func(np.array(row, np.int32), form) == 0:
            clock = int(row[TIME])
        found.append(clock)
    return found


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    count = draw(st.integers(1, 7))
    usual = draw(st.booleans())  # mostly good rows in the order of time
    fields = st.just(1) if usual else VALUES
    rows = [[draw(TYPES), draw(st.integers(-1, 5))] for _ in range(count)]
    table = np.array([[*row, *(draw(fields) for _ in range(FIELDS - 2))] for row in rows], np.int32)
    if usual:
        table[:, TIME].sort()
    if draw(st.booleans()):
        table[:, DIR] = table[:, LANE] >> 2
    return table


@settings(deadline=None)
@given(tables(), st.integers(0, 4), st.sampled_from([PAPER_ROWS, THESIS_ROWS, TRANSLATED_ROWS]))
def test_only_good_rows_advance_the_clock(table: np.ndarray, clock: int, form: int) -> None:
    columns = tuple(np.ascontiguousarray(table.T))
    times = stream_times(columns, clock, form)
    assert times.dtype == np.int64
    assert times.tolist() == one_by_one(columns, clock, form)
