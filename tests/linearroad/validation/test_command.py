"""The command: errors for bad input, all formats, and runs that stopped early."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linearroad.cli import app
from linearroad.validation import job as validation
from linearroad.validation import tables
from linearroad.validation.job import HistoryPaths, validate
from linearroad.validation.rows import COLUMNS
from linearroad.validation.tables import workshop
from typer.testing import CliRunner

from tests.linearroad.validation.runs import (
    expected_answers,
    line_of,
    time_of,
    write_case,
    write_run,
)
from tests.reference import linearroad as reference
from tests.reference.linearroad_strategies import Scenario, scenario
from xstream.errors import InputError, XStreamError

ROOT = Path(__file__).resolve().parents[3]
MANIFEST = b'{"version": 1, "complete": true, "parameters": {"expressways": 1}}'
REPORT = "0,{t},{vid},50,0,1,0,2,11000,-1,-1,-1,-1,-1,-1"


QUERY = "history|input|network|operators|output|rules|run|schema|tables"


def test_the_validator_shares_no_code_with_the_engine() -> None:
    for path in (ROOT / "apps" / "linearroad" / "validation").glob("*.py"):
        text = path.read_text()
        assert not re.search(rf"^\s*(from|import) linearroad\.({QUERY})\b", text, re.M), path
        assert not re.search(rf"^\s*from linearroad import ({QUERY})\b", text, re.M), path


def run_directory(folder: Path) -> Path:
    write_run(folder, [])
    return folder


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda f: (f / "run" / "summary.json").unlink(), "has no summary.json"),
        (lambda f: (f / "run" / "summary.json").write_text("{"), "cannot be read"),
        (lambda f: (f / "run" / "output.csv").unlink(), "neither output.csv nor output.parquet"),
        (
            lambda f: (f / "run" / "output.csv").write_text("0,1,0,0.000,45,0\n0,2,0,0.000,4"),
            "ends within a line: it is incomplete",
        ),
        (lambda f: (f / "rows.csv").unlink(), "does not exist"),
        (
            lambda f: write_run(f / "run", [], rules="own"),
            "--rules must be one of paper, brandeis, walmart",
        ),
    ],
)
def test_bad_input_gets_one_sentence(tmp_path: Path, spoil, sentence: str) -> None:
    run_directory(tmp_path / "run")
    (tmp_path / "rows.csv").write_text("")
    spoil(tmp_path)
    with pytest.raises(InputError, match=sentence):
        validate(tmp_path / "rows.csv", tmp_path / "run")


def test_paths_may_be_uris(tmp_path: Path) -> None:
    run_directory(tmp_path / "run")
    arguments = [
        "--input",
        (tmp_path / "rows.csv").as_uri(),
        "--output",
        (tmp_path / "run").as_uri(),
    ]
    failure = CliRunner().invoke(app, ["validate", *arguments]).exception
    assert isinstance(failure, InputError)
    assert str(failure).startswith(f"{tmp_path / 'rows.csv'} does not exist")


@pytest.mark.parametrize("name", ["", "validation.json", "differences.parquet"])
def test_an_output_that_cannot_be_written_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run_directory(tmp_path / "run")
    (tmp_path / "rows.csv").write_text("")
    monkeypatch.setattr(validation, "session", lambda *_: pytest.fail("Spark was started"))
    if name:
        (tmp_path / "run" / name).mkdir()
    else:
        # The tests may run as root, who may write anywhere.
        def refuse(dir: Path) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("xstream.console.outputs.tempfile.TemporaryFile", refuse)
    with pytest.raises(InputError, match=r"cannot be written: (Permission denied|it is a dir)"):
        validate(tmp_path / "rows.csv", tmp_path / "run")


@pytest.mark.parametrize("minutes", [0, -5, 99_999_999])
def test_minutes_out_of_range_are_refused(tmp_path: Path, minutes: int) -> None:
    run_directory(tmp_path / "run")
    (tmp_path / "rows.csv").write_text("")
    with pytest.raises(InputError, match=f"--minutes must be from 1 to 35791394, not {minutes}"):
        validate(tmp_path / "rows.csv", tmp_path / "run", minutes=minutes)


@pytest.mark.spark
def test_an_intermediate_table_has_all_its_rows_in_a_codec_that_can_be_read(
    spark_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with workshop(spark_session, tmp_path, 1) as shop:
        kept = shop.keep(spark_session.range(0, 5000, 1, 3))
        parts = list(shop.folder.rglob("part-*.parquet"))
        assert {pq.read_metadata(p).row_group(0).column(0).compression for p in parts} == {"ZSTD"}
        assert kept.count() == 5000
        monkeypatch.setattr(tables, "rows_written", lambda spark, folder: 4999)
        with pytest.raises(XStreamError, match="4,999 of 5,000 rows of an intermediate table"):
            shop.keep(spark_session.range(5000))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_lz4_with_a_large_dictionary_is_read(spark_session: Any, tmp_path: Path) -> None:
    """Spark's reader fails on it when it looks into the dictionary to skip row groups."""
    values = np.arange(20_000, dtype=np.int32).repeat(5) * 2
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": values}), path, compression="lz4", use_dictionary=True)
    with workshop(spark_session, tmp_path, 1) as shop:
        table = shop.spark.read.parquet(str(path))
        assert shop.keep(table.where("a = 3000")).count() == 5
        assert shop.keep(table.where("a = 3001")).count() == 0


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("output.parquet", b"PAR1", "not a Parquet file"),
        ("history", None, "has no manifest"),
        (
            "history",
            MANIFEST,
            "has no history",
        ),
        ("rows.csv.gz", gzip.compress(b"0" * 9999, mtime=0)[:20], "cannot be read to its end"),
    ],
)
def test_unreadable_files_get_one_sentence(
    spark_session: object, tmp_path: Path, name: str, content: bytes | None, sentence: str
) -> None:
    directory = run_directory(tmp_path / "run")
    rows = tmp_path / ("rows.csv.gz" if name == "rows.csv.gz" else "rows.csv")
    rows.write_bytes(b"")
    history = HistoryPaths()
    if name == "history":
        history = HistoryPaths(tmp_path)
        if content is not None:
            (tmp_path / "manifest.json").write_bytes(content)
    elif name == "rows.csv.gz":
        rows.write_bytes(content)
    else:
        (directory / "output.csv").unlink()
        (directory / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        validate(rows, directory, history)


def with_bad_rows(case: Scenario) -> Scenario:
    """Rows that do not count among those that do: unparsable, out of domain, late, repeated."""
    lines = case.text.splitlines()
    early = REPORT.format(t=0, vid=9)
    bad = ["", "1,2,3", "0,x" + ",1" * 13, "7" + ",1" * 14, "0,-1" + ",1" * 13,
           "0,99999999999" + ",1" * 13, early + "\r\r", " " + early, early,
           early + "\r"]  # fmt: skip
    for i, line in enumerate(bad):
        lines.insert(40 * (i + 1), line)
    return case._replace(text="\n".join([*lines, lines[-1] + "\r"]))


@pytest.mark.spark
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.xz", "csv.zst"])
def test_flat_files_are_read_as_the_rules_say(
    spark_session: object, tmp_path: Path, ending: str
) -> None:
    case = with_bad_rows(scenario(7))
    files = write_case(tmp_path / "case", case)
    data = case.text.encode()
    path = tmp_path / f"rows.{ending}"
    if ending == "csv.zst":
        with pa.output_stream(path, compression="zstd") as file:
            file.write(data)
    else:
        pack = {"csv": bytes, "csv.gz": gzip.compress, "csv.xz": lzma.compress}[ending]
        path.write_bytes(pack(data))
    from linearroad.validation.rows import read_input
    from linearroad.validation.vehicles import first_reports

    rows, rejects = reference.parse(case.text)
    with workshop(spark_session, tmp_path, len(data)) as shop:
        read = read_input(shop, path, None)
        reports = {tuple(row) for row in first_reports(shop, read.reports).collect()}
        requests = sorted((row.type, row.time, row.qid) for row in read.requests.collect())
    wanted = [row for row in rows if row.type == 0]
    assert reports == {(r.vid, r.xway, r.dir, r.seg, r.lane, r.time, r.spd, r.pos) for r in wanted}
    assert len(reports) == len(wanted)
    assert requests == sorted((r.type, r.time, r.qid) for r in rows if r.type != 0)
    assert {"out of order", "second report", "field count"} <= {r.reason for r in rejects}
    assert files.input.exists()


@pytest.mark.spark
def test_an_interrupted_run_is_checked_up_to_where_it_came(
    spark_session: object, tmp_path: Path
) -> None:
    """Parquet in, a run that stopped half-way through a second, an older balance, one 4 % off."""
    case = scenario(7)
    files = write_case(tmp_path / "case", case)
    rows, _ = reference.parse(case.text)
    table = np.array(rows, np.int32)
    pq.write_table(
        pa.table({name: table[:, i] for i, name in enumerate(COLUMNS)}), tmp_path / "rows.parquet"
    )
    answers = expected_answers(case)
    stop = time_of(answers[2 * len(answers) // 3])
    given = [answer for answer in answers if time_of(answer) <= stop]
    charged = {(a[1], a[4]) for a in given if a[0] == 2}
    lines = []
    for answer in given[:-1]:  # the last second is not complete
        if answer[0] == 4 and answer[3] >= 100:
            answer = (*answer[:3], int(answer[3] * 1.04), answer[4])
        if answer[0] == 2 and answer[4] == 0 and answer[1] >= 60:
            answer = (2, answer[1], answer[1] - 60, *answer[3:])
        lines.append(line_of(answer))
    assert charged
    write_run(tmp_path / "run", lines, interrupted=True, stream_seconds=stop)
    shown = validate(tmp_path / "rows.parquet", tmp_path / "run", files.history)
    assert shown.verdict.first_differences == []
    assert f"seconds before {stop:,} only" in shown.verdict.line()
    assert "--speed max" in shown.verdict.line()
    assert sum(e.right for e in shown.verdict.types) == sum(time_of(a) < stop for a in answers)


@pytest.mark.spark
def test_the_command_says_what_is_wrong_and_exits_with_one(
    spark_session: object, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text(REPORT.format(t=5, vid=4711) + "\n")
    write_run(tmp_path / "run", [])
    call = ["validate", "--input", str(tmp_path / "rows.csv"), "--output", str(tmp_path / "run")]
    done = CliRunner().invoke(app, [*call, "--report"])
    assert done.exit_code == 1, done.output
    assert "WRONG: 1 missing of 1 expected answers" in done.stdout
    assert (
        "vehicle 4711 crossed into segment 2 at 5 s: expected a toll notification "
        "(LAV -1, toll 0), none was sent" in done.stdout
    )
    assert (tmp_path / "run" / "report.html").is_file()
    write_run(tmp_path / "run", ["0,4711,5,5.000,-1,0"])
    done = CliRunner().invoke(app, [*call, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["passed"] is True
    assert not (tmp_path / "run" / "differences.parquet").exists()
