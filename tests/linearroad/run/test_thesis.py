"""`run --rules thesis`: every form of input, the stamped output, rejects, copies and constants."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linearroad.cli import app
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import MANIFEST_VERSION
from linearroad.input import open_input
from linearroad.rules import Tariff
from linearroad.run.job import RunOptions, run
from linearroad.schema import THESIS_COLUMNS
from linearroad.tables.history import History
from typer.testing import CliRunner

from tests.linearroad.engine import history_of
from tests.reference import linearroad as paper
from tests.reference import linearroad_thesis as reference
from tests.reference.linearroad_strategies import scenario as papers_scenario
from tests.reference.linearroad_thesis_strategies import Scenario, scenario


@pytest.fixture(scope="module")
def case() -> Scenario:
    return scenario(1)


def options(case: Scenario, **more) -> RunOptions:
    return RunOptions(rules="thesis", tariff=Tariff(*case.constants), **more)


def written(folder: Path) -> list[tuple[int, ...]]:
    """The answers of `output.csv`; Arrival is the second of their cause."""
    with (folder / "output.csv").open() as file:
        return sorted((int(float(arrival)), *map(int, rest)) for arrival, *rest in csv.reader(file))


def write_input(path: Path, case: Scenario) -> Path:
    """The case's rows as a file of the form that its name says."""
    rows = np.array([row.row() for row in case.rows], np.int32)
    if path.suffix == ".parquet":
        table = {name: rows[:, i] for i, name in enumerate(THESIS_COLUMNS)}
        pq.write_table(pa.table(table), path, write_page_checksum=True)
    elif path.suffix == ".bin":
        path.write_bytes(rows.astype("<i4").tobytes())
    else:
        path.write_text(case.text)
    return path


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.bin"])
def test_all_forms_of_nine_field_rows_are_read(tmp_path: Path, case: Scenario, name: str) -> None:
    source = write_input(tmp_path / name, case)
    history = history_of([], case.segment_history)
    result = run(source, tmp_path / "out", history, options(case))
    good, rejects = reference.parse(case.text)
    assert written(tmp_path / "out") == reference.answers(
        good, case.segment_history, case.constants
    )
    assert sum(result.rejects.values()) == len(rejects) > 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["rules"] == "thesis"
    assert summary["tariff"]["ftmin"] == case.constants.ftmin


def test_parquet_output_has_the_same_answers(tmp_path: Path, case: Scenario) -> None:
    source = write_input(tmp_path / "rows.csv", case)
    history = history_of([], case.segment_history)
    run(source, tmp_path / "csv", history, options(case))
    run(source, tmp_path / "parquet", history, options(case, form="parquet"))
    table = pq.read_table(tmp_path / "parquet" / "output.parquet")
    assert table.column_names == ["arrival", "type", "f1", "f2", "f3", "f4"]
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    assert sorted((int(row[0]), *row[1:]) for row in rows) == written(tmp_path / "csv")


def test_the_papers_traffic_is_translated(tmp_path: Path) -> None:
    """With the paper's domains, Day aside: it is not needed."""
    case = papers_scenario(3)
    lines = case.text.splitlines()
    bad = {
        10: ("0,0,1,9,0,5,0,1,0" + ",-1" * 6, "Lane"),
        20: ("0,0,1,9,0,1,0,1,528000" + ",-1" * 6, "Pos"),
        30: ("4,0,1,-1,0,-1,-1,-1,-1,3,1,2,8,5,-1", "DOW"),
        40: ("1" + ",0" * 14, "unknown type"),
        50: ("0,0", "field count"),
    }
    for at, (line, _) in bad.items():
        lines.insert(at, line)
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    history = history_of([], case.segment_history)
    result = run(tmp_path / "rows.csv", tmp_path / "out", history, RunOptions(rules="thesis"))
    good, _ = paper.parse(case.text)
    translated = [reference.of_paper(row) for row in good]
    assert written(tmp_path / "out") == reference.answers(translated, case.segment_history)
    assert all(result.rejects[reason] >= 1 for _, reason in bad.values())
    rejected = (tmp_path / "out" / "rejects.csv").read_text()
    assert "528000,-1,-1,-1,-1,-1,-1" in rejected  # as read, not as translated


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("0,5,1,50,0,100,0,1,0", "Mile"),
        ("0,5,1,50,0,9,1760,1,0", "Offset"),
        ("0,5,1,50,0,9,0,8,2", "Lane"),
        ("0,5,1,50,0,9,0,4,0", "Dir"),
        ("0,5,1,50,-1,100,0,1,0", "XWay"),
        ("2,5,1,-1,-1,-1,-1,-1,-1", "QID"),
        ("3,5,1,7,-1,0,0,0,0", "XWay"),
        ("4,5,1,7,0,100,0,0,0", "Minit"),
        ("4,5,1,7,0,0,-1,0,0", "Mend"),
        ("4,5,1,7,0,0,0,7,0", "DOW"),
        ("4,5,1,7,0,0,0,0,1440", "TOD"),
        ("1,5,1,7,0,0,0,0,0", "unknown type"),
        ("2,5,1,7", "field count"),
        ("0,0,2,50,0,9,0,1,0", "out of order"),
        ("0,1,1,50,0,9,0,1,0", "second report"),
    ],
)
def test_bad_rows_are_rejected_with_the_first_wrong_field(
    tmp_path: Path, line: str, reason: str
) -> None:
    good = "0,1,1,50,0,9,0,1,0\n"
    (tmp_path / "rows.csv").write_text(f"{good}{line}\n2,9,1,3,0,0,0,0,0\n")
    result = run(tmp_path / "rows.csv", tmp_path / "out", History(), RunOptions(rules="thesis"))
    assert (tmp_path / "out" / "rejects.csv").read_text() == f"2,{reason},{line}\n"
    assert result.reports == 1
    assert written(tmp_path / "out") == [(1, 0, 1, 0, -1, 0), (9, 2, 3, 0, 0, 0)]


def test_a_truncated_binary_row_is_rejected(tmp_path: Path, case: Scenario) -> None:
    source = write_input(tmp_path / "rows.bin", case)
    source.write_bytes(source.read_bytes()[:-10])
    result = run(source, tmp_path / "out", History(), options(case))
    assert result.rejects["field count"] == 1
    (reader,) = open_input(source, "thesis")
    assert reader.row(1) == ",".join(map(str, case.rows[0].row()))


@pytest.fixture
def directory(tmp_path: Path, case: Scenario) -> Path:
    """A generated directory of two expressways."""
    good, _ = reference.parse(case.text)
    layout = Layout(tmp_path / "base")
    layout.traffic(0, "csv").parent.mkdir(parents=True)
    good = [row._replace(vid=row.vid % 10_000) for row in good if row.xway < 2]
    good, _ = reference.parse(reference.to_text(good))
    for xway in range(2):
        own = [row for row in good if (row.xway if row.xway >= 0 else row.qid) % 2 == xway]
        layout.traffic(xway, "csv").write_text(reference.to_text(own))
    manifest = {
        "version": MANIFEST_VERSION,
        "complete": True,
        "parameters": {"format": "csv", "expressways": 2},
        "totals": {"vehicles": 10_000, "queries": 1 << 20},
    }
    layout.manifest.write_text(json.dumps(manifest))
    return layout.root


@pytest.mark.parametrize("threads", [1, 2])
def test_copies_equal_their_originals(
    tmp_path: Path, case: Scenario, directory: Path, threads: int
) -> None:
    result = run(
        directory, tmp_path / "digests", history_of([], case.segment_history),
        options(case, answers="digest", expressways=6, threads=threads),
    )  # fmt: skip
    assert result.copies_differ == 0, result.first_differences
    assert all(count > 0 for count in result.answers.values())


def test_two_files_are_one_stream_with_common_accounts(
    tmp_path: Path, case: Scenario, directory: Path
) -> None:
    run(directory, tmp_path / "out", history_of([], case.segment_history), options(case, threads=2))
    rows = [
        row
        for xway in range(2)
        for row in reference.parse(Layout(directory).traffic(xway, "csv").read_text())[0]
    ]
    good = sorted(rows, key=lambda row: row.time)
    assert written(tmp_path / "out") == reference.answers(
        good, case.segment_history, case.constants
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rules", "thesis", "--ftmin", "-1"], "--ftmin must be from 0"),
        (["--basetoll", "3"], "require --rules thesis"),
        (["--rules", "thesis", "--answers", "digest", "--minutes", "2", "--keep-state", "s"],
         "require --rules paper"),
    ],
)  # fmt: skip
def test_impossible_options_get_one_sentence(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "rows.csv").write_text("2,9,1,3,0,0,0,0,0\n")
    command = ["run", "--input", str(tmp_path / "rows.csv"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*command, *arguments])
    assert sentence in str(done.exception)


def test_binary_rows_require_the_rules_of_the_thesis(tmp_path: Path) -> None:
    (tmp_path / "rows.bin").write_bytes(b"")
    with pytest.raises(ValueError, match="require --rules thesis"):
        open_input(tmp_path / "rows.bin")
