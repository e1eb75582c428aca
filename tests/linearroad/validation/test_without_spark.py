"""What the validator reads with pyarrow alone agrees with what Spark reads, or is left to Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linearroad.validation import answers, sources
from linearroad.validation.answers import _write_flawless
from linearroad.validation.sources import (
    COLUMNS,
    Sources,
    count,
    follow_shares,
    is_plain,
    survey,
)

LINES = (
    "0,7,30,30.125,-1,0\n1,30,31.5,7,12\n2,60,60.000,59,4,1200\n3,61,61.000,5,90\n4,9,9.1,6,80,-1\n"
)
REPORT = (0, 30, 7, 55, 0, 1, 0, 12, 64_000, -1, -1, -1, -1, -1, -1)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run in this process."""

    def run(_: Any, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        return [function(item) for item in items]

    monkeypatch.setattr(sources, "run_tasks", run)


def sized(paths: tuple[Path, ...], before: int | None) -> Sources:
    found = survey(None, paths, before)
    assert found is not None
    return found


def rows(*changes: dict[str, int]) -> list[tuple[int, ...]]:
    """Reports that differ from `REPORT` in some fields."""
    return [tuple({**dict(zip(COLUMNS, REPORT, strict=True)), **each}.values()) for each in changes]


def write(path: Path, given: list[tuple[int, ...]], per_group: int = 2) -> Path:
    table = pa.table(dict(zip(COLUMNS, np.array(given, np.int32).T, strict=True)))
    pq.write_table(table, path, row_group_size=per_group)
    return path


def test_answers_of_all_types_are_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LINES)
    assert _write_flawless(tmp_path / "a.csv", tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.schema == answers.TYPED
    assert [tuple(row.values())[:6] for row in table.to_pylist()] == [
        (0, 30, 30_125, 7, -1, 0),
        (1, 30, 31_500, 7, 12, 0),
        (2, 60, 60_000, 4, 59, 1200),
        (3, 61, 61_000, 5, 0, 90),
        (4, 9, 9_100, 6, 80, -1),
    ]


@pytest.mark.parametrize(
    "line",
    ["", "5,1,1,1,1", "0,7,30,30.125,-1", "0,7.0,30,30.125,-1,0", "3,61,61.0,5,90,1", "1,30,x,7,12",
     "0,2147483648,30,30.125,-1,0", "3,61,61.000,5,9999999999999999", "3,61,61.000,5, 90"],
)  # fmt: skip
def test_one_unusual_line_leaves_the_file_to_spark(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.csv").write_text(f"{LINES}{line}\n{LINES}")
    assert not _write_flawless(tmp_path / "a.csv", tmp_path / "a.parquet")


@pytest.mark.parametrize("parts", [1, 500])
def test_rows_are_counted_by_second_and_requests_written(
    tmp_path: Path, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "GROUPS_PER_TASK", 1)
    monkeypatch.setattr(sources, "PARTS_PER_TASK", parts)
    given = rows(
        {}, {"vid": 8}, {"lane": 5}, {"time": 31, "type": 2, "qid": 3}, {"time": 31, "type": 3},
        {"time": 33, "type": 3, "qid": 4, "day": 69}, {"time": 33, "type": 4, "qid": 5},
        {"time": 90},
    )  # fmt: skip
    path = write(tmp_path / "rows.parquet", given, 2)
    assert is_plain(path)
    counted = count(None, sized((path,), 90), tmp_path / "requests")
    assert counted is not None
    assert counted.rate == {30: 2, 31: 1, 33: 1}
    assert counted.bad_rows == 3
    assert pq.read_table(tmp_path / "requests")["qid"].to_pylist() == [3, 4]


@pytest.mark.parametrize("per_group", [1, 2, 4])
def test_a_row_out_of_order_leaves_the_file_to_spark(
    tmp_path: Path, per_group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "GROUPS_PER_TASK", 1)
    path = write(tmp_path / "rows.parquet", rows({}, {"time": 31}, {"time": 30}), per_group)
    assert count(None, sized((path,), None), tmp_path / "requests") is None


def test_an_expressway_in_two_files_leaves_them_to_spark(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{n}.parquet", rows({"xway": xway}))
             for n, xway in enumerate((0, 1, 0))]  # fmt: skip
    assert count(None, sized(tuple(files[:2]), None), tmp_path / "one") is not None
    assert count(None, sized(tuple(files), None), tmp_path / "two") is None


def test_other_columns_leave_the_file_to_spark(tmp_path: Path) -> None:
    table = pq.read_table(write(tmp_path / "rows.parquet", rows({})))
    pq.write_table(
        table.cast(pa.schema([(n, pa.int64()) for n in COLUMNS])), tmp_path / "l.parquet"
    )
    assert not is_plain(tmp_path / "l.parquet")


def test_shares_of_the_vehicles_are_followed_as_all_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = rows(*({"time": t, "vid": v, "seg": t // 60 % 100, "pos": 100 * t}
                   for t in range(0, 600, 30) for v in range(9)))  # fmt: skip
    path = write(tmp_path / "rows.parquet", [*given, given[-1]], 7)

    def entered(folder: str, per_share: int) -> list[tuple[int, ...]]:
        monkeypatch.setattr(sources, "ROWS_PER_SHARE", per_share)
        follow_shares(None, sized((path,), None), tmp_path / folder)
        table = pq.read_table(tmp_path / folder, filters=[("what", "=", 0)])
        return sorted((row["vid"], row["time"], row["seg"]) for row in table.to_pylist())

    whole = entered("whole", 1 << 20)
    assert whole == [(v, t, t // 60) for v in range(9) for t in range(0, 600, 60)]
    assert entered("shares", 40) == whole
    assert len(list((tmp_path / "shares").iterdir())) == 5
