"""From files to files: all input formats, both output formats, rejects and errors."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linearroad.cli import app
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import MANIFEST_VERSION
from linearroad.input import FlatReader, Reject
from linearroad.run import memory
from linearroad.run.job import RunOptions, plan, run
from linearroad.schema import INPUT_COLUMNS
from linearroad.tables.history import History, load_history
from typer.testing import CliRunner

from tests.reference import linearroad as reference
from tests.reference.linearroad_strategies import Scenario, scenario
from xstream.errors import InputError, XStreamError

GOOD = "0,{t},5,50,0,1,0,2,11000" + ",-1" * 6 + "\n"


def generated(place: Path, files: dict[int, str]) -> Path:
    """A directory as `generate` writes it."""
    layout = Layout(place)
    layout.traffic(0, "csv").parent.mkdir(parents=True)
    for xway, text in files.items():
        layout.traffic(xway, "csv").write_text(text)
    parameters = {"format": "csv", "expressways": len(files)}
    manifest = {"version": MANIFEST_VERSION, "complete": True, "parameters": parameters}
    layout.manifest.write_text(json.dumps(manifest))
    return place


@pytest.fixture(scope="module")
def case() -> Scenario:
    found = scenario(7)
    lines = found.text.splitlines()
    # Bad rows of eight kinds among the good ones, a CR, leading zeros, a last line without end.
    good = "0,{t},5,50,0,1,0,2,11000,-1,-1,-1,-1,-1,-1"
    bad = [
        "", "1,2,3", "0,x,1,1,1,1,1,1,1,1,1,1,1,1,1", "7" + ",1" * 14, "0,-1" + ",1" * 13,
        "0,99999999999" + ",1" * 13, good.format(t=0) + "\r", " " + good.format(t=0),
    ]  # fmt: skip
    for i, line in enumerate(bad):
        lines.insert(40 * (i + 1), line)
    text = "\n".join(lines)
    return Scenario(found.rows, text, found.tolls, found.segment_history)


def answers_of_csv(path: Path) -> list[tuple[int, ...]]:
    """Lines of `output.csv` as the reference has them: without Emit, which is the Time here."""
    answers = []
    times = []
    for line in path.read_text().splitlines():
        fields = line.split(",")
        emit_at = 3 if fields[0] == "0" else 2
        time = fields[emit_at - 1]
        assert fields[emit_at] == f"{time}.000"
        times.append(int(time))
        answers.append(tuple(int(f) for i, f in enumerate(fields) if i != emit_at))
    assert times == sorted(times)
    return sorted(answers)


def expected(case: Scenario) -> list[tuple[int, ...]]:
    rows, _ = reference.parse(case.text)
    return reference.answers(rows, "paper", case.tolls, case.segment_history)


@pytest.fixture(scope="module")
def history(case: Scenario, tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("history")
    (folder / "tolls.csv").write_text(reference.to_text(case.tolls))
    (folder / "segments.csv").write_text(reference.to_text(case.segment_history))
    return load_history(None, folder / "tolls.csv", folder / "segments.csv")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.xz", "csv.zst"])
def test_a_flat_file_is_answered_line_by_line(
    case: Scenario, history: History, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"rows.{ending}"
    data = case.text.encode()
    if ending.endswith("gz"):
        path.write_bytes(gzip.compress(data))
    elif ending.endswith("xz"):
        path.write_bytes(lzma.compress(data))
    elif ending.endswith("zst"):
        with pa.output_stream(path, compression="zstd") as file:
            file.write(data)
    else:
        path.write_bytes(data)
    result = run(path, tmp_path / "out", history, RunOptions())
    assert answers_of_csv(tmp_path / "out" / "output.csv") == expected(case)
    rows, rejects = reference.parse(case.text)
    found = sorted((tmp_path / "out" / "rejects.csv").read_text().splitlines())
    assert found == sorted(f"{r.line},{r.reason},{r.row}" for r in rejects)
    assert sum(result.rejects.values()) == len(rejects)
    assert result.reports == sum(row.type == 0 for row in rows)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["reports"] == result.reports
    assert summary["rules"] == "paper"
    assert summary["speed"] == "max"


def parquet_of(case: Scenario, path: Path) -> None:
    rows, _ = reference.parse(case.text)
    table = np.array(rows, np.int32)
    pq.write_table(pa.table({name: table[:, i] for i, name in enumerate(INPUT_COLUMNS)}), path)


def test_parquet_in_and_parquet_out(case: Scenario, history: History, tmp_path: Path) -> None:
    parquet_of(case, tmp_path / "rows.parquet")
    run(tmp_path / "rows.parquet", tmp_path, history, RunOptions(form="parquet"))
    fields = {
        0: ("vid", "time", "lav", "toll"), 1: ("time", "vid", "seg"),
        2: ("time", "resulttime", "qid", "bal"), 3: ("time", "qid", "bal"),
        4: ("time", "qid", "traveltime", "toll"),
    }  # fmt: skip
    table = pq.read_table(tmp_path / "output.parquet").to_pylist()
    found = sorted((row["type"], *(row[name] for name in fields[row["type"]])) for row in table)
    assert found == expected(case)
    for row in table:
        others = set(row) - {"type", "emit", *fields[row["type"]], "time"}
        assert all(row[name] is None for name in others)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_several_files_are_merged_by_time_and_rejects_name_theirs(
    case: Scenario, tmp_path: Path, threads: int
) -> None:
    rows, _ = reference.parse(case.text)
    mine = [row for row in rows if row.type in (0, 2)]
    layout = Layout(tmp_path)
    for xway in (0, 1):
        own = [row for row in mine if (row.xway if row.type == 0 else row.qid) % 2 == xway]
        text = reference.to_text(own) + ("nonsense\n" if xway else "")
        layout.traffic(xway, "csv").parent.mkdir(exist_ok=True)
        layout.traffic(xway, "csv").write_text(text)
    parameters = {"format": "csv", "expressways": 2}
    manifest = {"version": MANIFEST_VERSION, "complete": True, "parameters": parameters}
    layout.manifest.write_text(json.dumps(manifest))
    run(tmp_path, tmp_path / "out", History(), RunOptions(threads=threads))
    expected = reference.answers(mine, "paper")
    assert any(row[0] == 2 and row[4] > 0 for row in expected)
    assert answers_of_csv(tmp_path / "out" / "output.csv") == expected
    line = sum((row.xway if row.type == 0 else row.qid) % 2 for row in mine) + 1
    found = (tmp_path / "out" / "rejects.csv").read_text()
    assert found == f"{line},field count,nonsense,xway-00001.csv\n"


def test_minutes_cut_the_stream(case: Scenario, tmp_path: Path) -> None:
    parquet_of(case, tmp_path / "rows.parquet")
    rows, _ = reference.parse(case.text)
    first = min(row.time for row in rows)
    minutes = first // 60 + 4
    run(tmp_path / "rows.parquet", tmp_path, History(), RunOptions(minutes=minutes))
    early = [row for row in rows if row.time < 60 * minutes]
    assert 0 < len(early) < len(rows)
    assert answers_of_csv(tmp_path / "output.csv") == reference.answers(early, "paper")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "manifest"),
        (lambda path: path.with_suffix(".parquet").write_bytes(b"PAR1"), "not a Parquet file"),
    ],
)
def test_bad_input_gets_one_sentence(tmp_path: Path, make, sentence: str) -> None:
    path = tmp_path / "rows"
    make(path)
    if path.with_suffix(".parquet").exists():
        path = path.with_suffix(".parquet")
    with pytest.raises(InputError, match=sentence):
        run(path, tmp_path / "out", History(), RunOptions())


def test_a_missing_column_and_a_truncated_file_are_named(case: Scenario, tmp_path: Path) -> None:
    pq.write_table(pa.table({"type": [0]}), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="has no column 'time'"):
        run(tmp_path / "rows.parquet", tmp_path, History(), RunOptions())
    whole = gzip.compress(case.text.encode())
    (tmp_path / "rows.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read to its end"):
        run(tmp_path / "rows.csv.gz", tmp_path, History(), RunOptions())


def test_a_run_replaces_what_an_earlier_one_left(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("0,0,1,50,0,1,0,1,6000" + ",-1" * 6 + "\n")
    run(tmp_path / "rows.csv", tmp_path / "out", History(), RunOptions(form="parquet"))
    run(tmp_path / "rows.csv", tmp_path / "out", History(), RunOptions(form="csv"))
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert found == {"output.csv", "rejects.csv", "summary.json", "timeline.csv"}


@pytest.mark.parametrize("wrong", [{"form": "xml"}, {"scheduler": "best"}, {"memory": "none"}])
def test_a_refused_run_leaves_the_earlier_answers_alone(tmp_path: Path, wrong: dict) -> None:
    (tmp_path / "rows.csv").write_text("0,0,1,50,0,1,0,1,6000" + ",-1" * 6 + "\n")
    run(tmp_path / "rows.csv", tmp_path / "out", History(), RunOptions())
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(XStreamError):
        run(tmp_path / "rows.csv", tmp_path / "out", History(), RunOptions(**wrong))
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("", {}, r"rows.csv has no rows \(--allow-empty"),
        ("", {"answers": "digest"}, "rows.csv has no rows"),
        (GOOD.format(t=300), {"minutes": 5}, "rows.csv has no rows in its first 5 minutes"),
        ("hello\n" * 3, {}, "none of the 3 rows of .*rows.csv could be used.*line 1: field count"),
        (GOOD.format(t=-1), {}, "none of the 1 rows of .*line 1: Time; .*rejects.csv"),
    ],
)
def test_an_input_without_a_usable_row_is_refused_unless_that_is_wanted(
    tmp_path: Path, text: str, options: dict, sentence: str
) -> None:
    (tmp_path / "rows.csv").write_text(text)
    out = tmp_path / "out"
    with pytest.raises(InputError, match=sentence):
        run(tmp_path / "rows.csv", out, History(), RunOptions(**options))
    assert {path.name for path in out.iterdir()} == {"rejects.csv", "timeline.csv"}
    rejected = len(text.splitlines()) if "none of" in sentence else 0
    assert len((out / "rejects.csv").read_text().splitlines()) == rejected
    allowed = RunOptions(**options, allow_empty=True)
    result = run(tmp_path / "rows.csv", out, History(), allowed)
    assert (result.reports, result.requests) == (0, 0)
    assert (out / "summary.json").exists()


def test_more_expressways_than_fit_are_refused_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"0,0,{x},50,{x},1,0,{x % 100},500" + ",-1" * 6 + "\n" for x in range(5000)]
    (tmp_path / "rows.csv").write_text("".join(rows))
    for free, fits in ((memory.TABLES_BYTES * 5000, True), (memory.TABLES_BYTES * 4999, False)):
        monkeypatch.setattr(memory, "available_bytes", lambda free=free: free)
        if fits:
            result = run(tmp_path / "rows.csv", tmp_path / "out", History(), RunOptions())
            assert result.reports == 5000
            continue
        with pytest.raises(InputError, match=r"5,000 expressways need about .* GiB of memory"):
            run(tmp_path / "rows.csv", tmp_path / "out", History(), RunOptions())


@pytest.mark.parametrize("ending", [b"", b"\n", b"\n" + GOOD.format(t=1).encode()])
@pytest.mark.parametrize("length", [1 << 16, (1 << 16) + 1, 1 << 21, (1 << 21) + 7, 5 << 20])
def test_a_line_without_end_is_one_reject(tmp_path: Path, length: int, ending: bytes) -> None:
    """A long line is skipped in blocks, and the following lines are read."""
    text = GOOD.format(t=0).encode() + b"7" * length + ending
    (tmp_path / "rows.csv").write_bytes(text)
    result = run(tmp_path / "rows.csv", tmp_path / "out", History(), RunOptions())
    assert result.reports == text.count(b"0,5,50,") + text.count(b"1,5,50,")
    row = (tmp_path / "out" / "rejects.csv").read_text()
    if length == 1 << 16:
        assert row == f"2,field count,{'7' * length}\n"
        return
    assert row == f"2,line too long,{'7' * 200}... ({length:,} bytes)\n"


def test_lines_without_end_take_bounded_memory(tmp_path: Path) -> None:
    """Three lines of 64 MiB are read with less than 16 MiB."""
    with (tmp_path / "rows.csv").open("wb") as file:
        for _ in range(3):
            for _ in range(64):
                file.write(b"1," * (1 << 19))
            file.write(b"\n")
    reader = FlatReader(tmp_path / "rows.csv")
    rejects: list[Reject] = []
    reader.on_reject = rejects.append
    list(FlatReader(Path(os.devnull)).chunks())  # compiled before it is measured
    tracemalloc.start()
    try:
        assert list(reader.chunks()) == []
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [reject.reason for reject in rejects] == ["line too long"] * 3
    assert most < 16 << 20


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"minutes": 0}, "--minutes must be from 1 to"),
        ({"minutes": -5}, "--minutes must be from 1 to"),
        ({"minutes": 2**40}, "--minutes must be from 1 to"),
        ({"speed": float("nan")}, "--speed must be max, or from 0.001 to 1,000,000, not nan"),
        ({"speed": 0.0}, "--speed must be"),
        ({"speed": -1.0}, "--speed must be"),
        ({"speed": 1e300}, "--speed must be .* not 1e.300"),
        ({"speed": float("inf")}, "--speed must be"),
    ],
)
def test_numbers_out_of_range_are_refused_before_anything_is_touched(
    tmp_path: Path, options: dict, sentence: str
) -> None:
    (tmp_path / "rows.csv").write_text(GOOD.format(t=0))
    with pytest.raises(InputError, match=sentence):
        run(tmp_path / "rows.csv", tmp_path / "out", History(), RunOptions(**options))
    assert not (tmp_path / "out").exists()


def test_the_command_line_runs_and_prints_the_plan(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("0,0,1,50,0,0,0,1,6000,-1,-1,-1,-1,-1,-1\n")
    call = ["run", "--input", str(tmp_path / "rows.csv"), "--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["answers"]["toll notifications"] == 1
    assert "segment statistics" in plan().to_dot()
    refused = CliRunner().invoke(app, [*call, "--speed", "fast"])
    assert isinstance(refused.exception, InputError)
