"""Parquet pages without checksums are accepted with one warning; damaged ones are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linearroad.run.job import RunOptions, run
from linearroad.schema import INPUT_COLUMNS
from linearroad.tables.history import History, load_history

from tests.apps.command import call
from tests.reference import linearroad as reference
from tests.reference.linearroad_strategies import Scenario
from xstream.errors import InputError
from xstream.io.page_checksums import has_page_checksums, unverified_sentence


@pytest.fixture(scope="module")
def table(case: Scenario) -> pa.Table:
    rows, _ = reference.parse(case.text)
    columns = np.array([tuple(row) for row in rows], np.int32).T
    return pa.table(dict(zip(INPUT_COLUMNS, columns, strict=True)))


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_checksums_are_found_where_they_are_written(
    table: pa.Table, tmp_path: Path, checksums: bool, dictionary: bool, version: str
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(
        table, path, row_group_size=100, use_dictionary=dictionary, data_page_version=version,
        write_page_checksum=checksums,
    )  # fmt: skip
    assert has_page_checksums(path, INPUT_COLUMNS) is checksums


def test_one_column_without_checksums_is_enough_to_be_told(table: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    pq.write_table(table.slice(0, 0), path)
    assert has_page_checksums(path, INPUT_COLUMNS)  # no pages, so nothing can be damaged
    tolls = pa.table({name: [1] for name in ("vid", "day", "xway", "tolls")})
    pq.write_table(tolls, tmp_path / "tolls.parquet")
    history = load_history(None, tmp_path / "tolls.parquet", None)
    assert history.unverified == (tmp_path / "tolls.parquet",)
    paths = [tmp_path / name for name in "abc"]
    assert unverified_sentence(paths).startswith(f"{paths[0]} and 2 others have no page")


def test_a_file_without_checksums_is_told_of_once(
    table: pa.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for checksums in (True, False):
        path, out = tmp_path / f"{checksums}.parquet", tmp_path / f"out-{checksums}"
        pq.write_table(table, path, write_page_checksum=checksums)
        assert call(monkeypatch, "linearroad", "run", "--input", path, "--out", out) == 0
        said = capsys.readouterr()
        sentence = f"{path} has no page checksums, so damaged data in it goes unnoticed"
        assert said.err.count(sentence) == (not checksums)
        assert sentence not in said.out
        warnings = json.loads((out / "summary.json").read_text())["warnings"]
        assert [each for each in warnings if "checksum" in each] == [sentence] * (not checksums)


def test_a_flipped_bit_in_a_page_with_a_checksum_is_noticed(
    table: pa.Table, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(
        table, path, write_page_checksum=True, compression="none", use_dictionary=False
    )  # fmt: skip
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 16
    path.write_bytes(data)
    with pytest.raises(InputError, match="cannot be read to its end"):
        run(path, tmp_path / "out", History(), RunOptions())
