"""Integers are read from flat files and Parquet alike, and anything else gets a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from xstream.errors import InputError
from xstream.io.integer_columns import check_ranges, integer_columns


def test_flat_files_and_parquet_have_the_same_columns(tmp_path: Path) -> None:
    flat, table = tmp_path / "rows.csv", tmp_path / "rows.parquet"
    flat.write_text("1,-5\n2,6\n")
    pq.write_table(pa.table({"B": [-5, 6], "A": pa.array([1, 2], pa.int8())}), table)
    for path in (flat, table):
        assert [column.tolist() for column in integer_columns(path, ("a", "b"))] == [
            [1, 2],
            [-5, 6],
        ]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": [1]}, "has no column 'b'"),
        ({"a": [1], "b": [0.5]}, "column 'b' contains values that are not integers"),
        ({"a": [None, 1], "b": [1, 2]}, "column 'a' contains values that are not integers"),
    ],
)
def test_columns_of_anything_else_are_refused(
    tmp_path: Path, columns: dict[str, list[object]], words: str
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=words):
        integer_columns(path, ("a", "b"))


def test_a_file_that_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    damaged = tmp_path / "rows.parquet"
    damaged.write_bytes(b"PAR1")
    for path in (damaged, tmp_path / "missing.csv"):
        with pytest.raises(InputError, match=f"{path} cannot be read"):
            integer_columns(path, ("a",))


def test_the_first_value_outside_its_range_is_named() -> None:
    days = np.array([1, 70, 71, -3])
    check_ranges(Path("rows.csv"), ("Day", days, -3, 71))
    with pytest.raises(InputError, match=r"rows\.csv: Day must be from 1 to 70, not 71"):
        check_ranges(Path("rows.csv"), ("Day", days, 1, 70))
