"""Time in runs: pacing, rows from the future, and files that differ in length and rate."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linearroad.cli import app
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import MANIFEST_VERSION
from linearroad.output.sink import RunResult
from linearroad.run.job import RunOptions, run
from linearroad.schema import INPUT_COLUMNS
from linearroad.tables.history import History
from linearroad.tables.text import format_answers
from typer.testing import CliRunner

from tests.linearroad.run.test_files import GOOD, generated
from tests.reference import linearroad as reference
from xstream.console import Progress
from xstream.console.live import Live
from xstream.io.schedule import Schedule


def test_a_paced_run_answers_in_time_and_says_when(tmp_path: Path) -> None:
    rows = [f"0,{t},{v},50,0,0,0,1,6000,-1,-1,-1,-1,-1,-1" for t in range(4) for v in [t]]
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    result = run(tmp_path / "rows.csv", tmp_path, History(), RunOptions(speed=20.0))
    assert result.wall_seconds >= 3 / 20
    delays = result.response_s["toll notifications"]
    assert 0 <= delays["p50"] <= delays["worst"]
    for line in (tmp_path / "output.csv").read_text().splitlines():
        assert float(line.split(",")[3]) >= int(line.split(",")[2])


@pytest.mark.parametrize("files", [1, 2])
def test_a_jump_of_years_is_waited_for_with_a_word_and_can_be_interrupted(
    tmp_path: Path, files: int
) -> None:
    source = tmp_path / "rows.csv"
    text = GOOD.format(t=0) + GOOD.format(t=2_000_000_000)
    source.write_text(text)
    if files == 2:
        source = generated(tmp_path / "generated", {0: text, 1: text.replace("0,5,", "0,6,")})
    seen: list[float] = []
    said = io.StringIO()
    live = Live(True, None, Progress("run", stream=said))

    def look(result: RunResult) -> None:
        live(result)
        seen.append(result.idle_s)
        if sum(idle_s > 1e9 for idle_s in seen) == 3:
            signal.raise_signal(signal.SIGINT)

    result = run(source, tmp_path / "out", History(), RunOptions(speed=0.1), look)
    assert result.interrupted_by_user
    assert result.interruption() == "answers are complete up to stream second 0"
    assert result.answers["toll notifications"] == files
    assert "after second 0 the next rows are due in 634 years; Ctrl-C" in said.getvalue()


def test_a_row_from_the_future_is_warned_about(tmp_path: Path) -> None:
    rows = [GOOD.format(t=t) for t in range(100)]
    rows.insert(40, GOOD.format(t=2_000_000_000))
    (tmp_path / "rows.csv").write_text("".join(rows))
    call = ["run", "--input", str(tmp_path / "rows.csv"), "--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    (warning,) = json.loads(done.stdout)["warnings"]
    assert "60 rows were rejected because their Time is before" in warning
    assert "first line 42:" in warning
    assert f"WARNING: {warning}" in done.stderr


#: Seconds of the reports of five files: one dense, one sparse, one with an hour's gap, one that
#: ends early, one that is empty.
UNEQUAL: dict[int, Sequence[int]] = {
    0: [t for t in range(2000) for _ in range(40)],
    1: range(0, 2000, 97),
    2: [*range(100), *range(3700, 3800)],
    3: range(50),
    4: [],
}


@pytest.fixture(scope="module")
def unequal(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """The files of UNEQUAL, and the answers to their rows."""
    files, reports = {}, []
    for xway, times in UNEQUAL.items():
        rows = [
            f"0,{t},{1000 * xway + i % 997},40,{xway},1,0,{i % 100},{5280 * (i % 100)}" + ",-1" * 6
            for i, t in enumerate(times)
        ]
        rows += [f"2,{t},1,-1,-1,-1,-1,-1,-1,{i}" + ",-1" * 5 for i, t in enumerate(times[-1:])]
        files[xway] = "".join(row + "\n" for row in rows)
        reports += rows
    ordered = sorted(reports, key=lambda row: int(row.split(",")[1]))
    rows, _ = reference.parse("".join(row + "\n" for row in ordered))
    place = generated(tmp_path_factory.mktemp("unequal"), files)
    return place, reference.answers(rows, "paper")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("speed", [None, 5000.0], ids=["max", "paced"])
def test_files_of_unequal_length_and_rate_keep_in_step(
    unequal: tuple[Path, list[Any]], tmp_path: Path, threads: int, speed: float | None
) -> None:
    source, expected = unequal
    result = run(source, tmp_path, History(), RunOptions(threads=threads, speed=speed))
    assert result.rows == sum(map(len, UNEQUAL.values())) + 4
    assert sum(result.rejects.values()) == 0
    assert result.answers["balances"] == 4
    lines = (tmp_path / "output.csv").read_text().splitlines()
    times = [int(line.split(",")[2 if line[0] == "0" else 1]) for line in lines]
    assert times == sorted(times)
    assert sorted(tuple(row) for row in without_emit(lines)) == expected


def without_emit(lines: list[str]) -> list[list[int]]:
    """Answers without Emit, which a paced run does not determine."""
    fields = (line.split(",") for line in lines)
    return [
        [int(f) for i, f in enumerate(row) if i != (3 if row[0] == "0" else 2)] for row in fields
    ]


@pytest.mark.parametrize("rules", ["paper", "brandeis", "walmart"])
@pytest.mark.parametrize("speed", [None, 2000.0], ids=["max", "paced"])
def test_a_bad_row_from_the_future_holds_nobody_up(
    tmp_path: Path, rules: str, speed: float | None
) -> None:
    """The row is rejected when it is read; later rows and other files are processed in time."""
    layout = Layout(tmp_path)
    layout.traffic(0, "csv").parent.mkdir()
    bad = "0,2000000000,7,50,0,9,0,2,11000" + ",-1" * 6
    for xway in (0, 1):
        rows = [f"0,{t},{xway},50,{xway},1,0,{t % 100},500" + ",-1" * 6 for t in range(200)]
        if xway == 0:
            rows.insert(100, bad)
        layout.traffic(xway, "csv").write_text("".join(row + "\n" for row in rows))
    manifest = {
        "version": MANIFEST_VERSION,
        "complete": True,
        "parameters": {"format": "csv", "expressways": 2},
    }
    layout.manifest.write_text(json.dumps(manifest))
    result = run(tmp_path, tmp_path / "out", History(), RunOptions(rules=rules, speed=speed))
    assert result.rejects == {"Lane": 1}
    assert result.reports == 400
    assert (tmp_path / "out" / "rejects.csv").read_text() == f"101,Lane,{bad},xway-00000.csv\n"


@pytest.mark.parametrize("parquet", [False, True], ids=["flat", "Parquet"])
def test_nothing_is_compiled_after_the_clock_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parquet: bool
) -> None:
    """Otherwise the answers of the first second are late if the cache of code is empty."""
    source = tmp_path / "rows.csv"
    source.write_text("".join(GOOD.format(t=t) for t in (0, 30, 60)))
    if parquet:
        columns = np.loadtxt(source, np.int32, delimiter=",").T
        source = tmp_path / "rows.parquet"
        pq.write_table(pa.table(dict(zip(INPUT_COLUMNS, columns, strict=True))), source)
    begin, seen = Schedule.start, []

    def signatures() -> list[Any]:
        return list(format_answers.signatures)

    def start(self: Schedule) -> None:
        seen.append(signatures())
        begin(self)

    monkeypatch.setattr(Schedule, "start", start)
    format_answers._reset_overloads()
    run(source, tmp_path / "out", History(), RunOptions(speed=1000.0))
    assert seen[0] == signatures()
