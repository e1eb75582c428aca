"""Streams are reproducible, engines are fed and judged, and faults are named."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner
from yabench.benchmark import oracle_of, run_tests
from yabench.bindings import Bag, binding_of
from yabench.checks import check
from yabench.cli import app
from yabench.engines import engine_of
from yabench.experiments import test_file as built_in
from yabench.files import read_records, write_stream
from yabench.limit import sustainable
from yabench.record_oracle import SqlOracle
from yabench.stream import read_rdf_stream
from yabench.testfile import read_tests
from yabench.weather import as_records, generate, rdf_of
from yabench.windows import Scope

import xstream as xs
from xstream.console import Progress

pytest.importorskip("duckdb")
EXPERIMENTS = built_in(Path("e1")).parent


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.n3t", "a.n3t.xz", "a.jsonl", "a.arrow", "a.jsonl.xz"):
        texts = []
        for number in range(2):
            part = tmp_path / f"{number}"
            write_stream(generate(7, 1000, 3000, 5), Path(name), part)
            texts.append(part.read_bytes())
        assert texts[0] == texts[1]
    assert not np.array_equal(generate(7, 1000, 3000, 5).value, generate(7, 1000, 3000, 6).value)


def test_both_forms_are_the_same_stream(tmp_path: Path) -> None:
    records = generate(5, 500, 2000, 3)
    write_stream(records, Path("s.n3t"), tmp_path / "s.n3t")
    write_stream(records, Path("s.arrow"), tmp_path / "s.arrow")
    rdf, again = read_rdf_stream(tmp_path / "s.n3t"), read_records(tmp_path / "s.arrow")
    assert rdf.items == rdf_of(records).items
    assert sum(map(len, rdf.items.values())) == 7 * len(records) == 7 * 20
    for name in ("time", "station", "observation", "value"):
        assert np.array_equal(getattr(again, name), getattr(records, name))


@given(st.integers(1, 30), st.integers(1, 50), st.integers(1, 100), st.integers(0, 2**40))
def test_every_station_reports_once_per_interval(
    stations: int, interval: int, duration: int, seed: int
) -> None:
    records = generate(stations, interval, duration, seed)
    assert (np.diff(records.time) >= 0).all()
    assert len(set(records.observation.tolist())) == len(records)
    for station in range(stations):
        times = records.time[records.station == station]
        assert (np.diff(times) == interval).all()
        assert all(times < duration)
        assert len(times) in (duration // interval, -(-duration // interval))


def write_test(folder: Path, text: str) -> Path:
    for name in ("q1.sql", "q1.xstream", "q6.sql", "q6.xstream", "q6.duckdb.sql", "q6.rspql"):
        (folder / name).write_text((EXPERIMENTS / name).read_text())
    file = folder / "tests.toml"
    file.write_text(text)
    return file


FILE = """
engine = ["xstream", "xstream-rdf", "duckdb", "rsp-js",
  "faulty-late", "faulty-lossy", "faulty-shifted"]
stations = 12
duration_s = 12
speed = 4
gracious = true
[query]
oracle = "q6.sql"
engine = "q6.xstream"
duckdb = "q6.duckdb.sql"
rsp-js = "q6.rspql"
[vars]
TEMP = 0.0
WSIZE_ms = 4000
WSLIDE_ms = 4000
"""


@pytest.mark.slow
def test_engines_are_judged_and_each_fault_is_named(tmp_path: Path) -> None:
    tests = read_tests(write_test(tmp_path, FILE))
    found = run_tests(tests, tmp_path / "out", Progress.silent())
    by_engine = {each["engine"]: each for each in found}
    for name in ("xstream", "xstream-rdf", "duckdb"):
        assert not by_engine[name]["failure"]
        assert by_engine[name]["judged"]["strict"]["right"], name
        assert by_engine[name]["samples"][-1]["rss_mb"] > 10
    findings = {
        name: each["judged"]["strict"]["finding"] for name, each in by_engine.items()
        if "judged" in each
    }  # fmt: skip
    assert "late" in findings["faulty-late"]
    assert "lost" in findings["faulty-lossy"]
    assert "shifted" in findings["faulty-shifted"]
    assert by_engine["faulty-shifted"]["judged"]["gracious"]["right"]
    if by_engine["rsp-js"]["missing"]:
        assert "xstream yabench install rsp-js" in by_engine["rsp-js"]["failure"]
    else:
        assert by_engine["rsp-js"]["judged"]["strict"]["right"], by_engine["rsp-js"]["failure"]
    began = time.monotonic()  # a second run has nothing to do
    again = run_tests(tests, tmp_path / "out", Progress.silent())
    assert time.monotonic() - began < 5
    assert [each["date"] for each in again if not each["missing"]] == [
        each["date"] for each in found if not each["missing"]
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.spark), "flink"])
@pytest.mark.parametrize("policy", ["window-close", "non-empty"])
def test_engines_of_the_jvm_are_right_when_windows_close(
    tmp_path: Path, engine: str, policy: str
) -> None:
    if missing := engine_of(engine).missing:
        pytest.skip(missing)
    tests = read_tests(
        built_in(Path("e1")),
        [f"engine={engine}", "runs=1", "duration_s=12", "stations=20", f"policy={policy}"],
    )
    (found,) = run_tests(tests[:1], tmp_path / "out", Progress.silent())
    assert not found["failure"]
    assert found["judged"]["strict"]["right"], found["judged"]["strict"]["finding"]
    assert sum(window["expected"] for window in found["judged"]["strict"]["windows"]) > 50


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_windows_of_spark_end_at_multiples_of_the_slide(tmp_path: Path) -> None:
    if missing := engine_of("spark").missing:
        pytest.skip(missing)
    uneven = ["engine=spark", "runs=1", "duration_s=9", "WSIZE_ms=4000", "WSLIDE_ms=3000"]
    (found,) = run_tests(
        read_tests(built_in(Path("e1")), uneven)[:1], tmp_path / "out", Progress.silent()
    )
    assert found["judged"]["strict"]["right"], found["judged"]["strict"]["finding"]


def test_an_engine_that_fails_is_reported_with_its_last_words(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("import sys; sys.exit('no idea')")
    text = FILE.replace(FILE[: FILE.index("stations")], f'engine = "python {bad}"\n')
    found = run_tests(read_tests(write_test(tmp_path, text)), tmp_path / "out", Progress.silent())
    assert "no idea" in found[0]["failure"]
    assert not found[0]["judged"]["strict"]["right"]


def test_settings_of_the_command_line_win_over_those_of_a_test(tmp_path: Path) -> None:
    text = 'stations = 1\nTEMP = 1\n[query]\noracle = "q1.sql"\n[[tests]]\nname = "a"\nstations = 2'
    file = write_test(tmp_path, text)
    assert [test.stations for test in read_tests(file)] == [2]
    (test,) = read_tests(file, ["stations=3", "TEMP=60.5", "policy=non-empty"])
    assert (test.stations, test.windowing.policy) == (3, "non-empty")
    assert "value > 60.5" in test.oracle
    assert test.key("xstream") != read_tests(file)[0].key("xstream")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stations = ", "cannot be read"),
        ("stations = 'x'\n[query]\noracle = 'q1.sql'", "stations"),
        ("[vars]\nTEMP = 1", "oracle is missing"),
        ("[query]\noracle = 'q1.sql'", "TEMP"),
        ("[query]\noracle = 'none.sql'", "none.sql"),
        ("TEMP = 1\nscenario = 'sea'\n[query]\noracle = 'q1.sql'", "sea"),
        ("TEMP = 1\npolicy = 'never'\n[query]\noracle = 'q1.sql'", "never"),
        ("TEMP = 1\n[query]\noracle = 'q1.sql'\n[[tests]]\nname='a/b'", "folder"),
        ("TEMP = 1\n[query]\noracle = 'q1.sql'\n[[tests]]\nname='a'\n[[tests]]\nname='a'", "two"),
        ("speed = inf\nTEMP = 1\n[query]\noracle = 'q1.sql'", "speed"),
        ("runs = 0\nTEMP = 1\n[query]\noracle = 'q1.sql'", "runs"),
    ],
)
def test_a_test_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(xs.InputError, match=words):
        read_tests(write_test(tmp_path, text))


def test_the_test_file_of_the_documentation_works(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "yabench.md").read_text(encoding="utf-8")
    files = re.findall(r"^`([\w.]+)`[^\n]*:\n```\w+\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert files[0][0] == "tests.toml"
    for name, content in files:
        (tmp_path / name).write_text(content)
    fast = ["runs=1", "duration_s=6", "speed=10"]
    tests = read_tests(tmp_path / "tests.toml", fast)[:1]
    found = run_tests(tests, tmp_path / "out", Progress.silent())
    assert [each["engine"] for each in found] == ["xstream", "duckdb"]
    for each in found:
        assert each["judged"]["strict"]["right"], each["failure"]
        assert each["judged"]["strict"]["windows"][0]["expected"] > 0


def test_the_speed_may_be_given_as_an_option(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["run", "e1", "--test", "e1-small", "--out", str(out), "--speed", "20", "--json"]
    settings = ["-D", "runs=1", "-D", "duration_s=6", "-D", "engine=faulty-lossy"]
    done = CliRunner().invoke(app, [*command, *settings])
    (found,) = json.loads(done.stdout)
    (same,) = read_tests(
        built_in(Path("e1")), ["speed=20", "runs=1", "duration_s=6", "engine=faulty-lossy"]
    )[:1]
    assert found["key"] == same.key("faulty-lossy")


def test_a_test_file_that_does_not_exist_is_named() -> None:
    with pytest.raises(xs.InputError, match="no test file e9"):
        built_in(Path("e9"))


@pytest.mark.parametrize("query", ["SELEC", "SELECT 1 AS x", "SELECT nothing FROM items"])
def test_a_query_that_fails_is_refused(query: str) -> None:
    with pytest.raises(xs.InputError, match="oracle's query"):
        SqlOracle(generate(1, 1000, 1000, 1), query)


@pytest.mark.parametrize("name", ["e1", "e2", "e3", "e4"])
def test_the_experiments_are_test_files(name: str) -> None:
    for test in read_tests(built_in(Path(name)), ["stations=2", "duration_s=2"]):
        oracle = oracle_of(test, generate(2, 1000, 2000, test.seed))
        assert oracle.results(Scope(0, 5000)) is not None
        json.dumps(test.task("xstream"))


@pytest.mark.parametrize(("language", "program"), [("python", "python"), ("javascript", "node")])
def test_a_new_adapter_works_and_is_short(tmp_path: Path, language: str, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    made = CliRunner().invoke(
        app, ["adapter", "new", str(tmp_path / "mine"), "--language", language]
    )
    assert made.exit_code == 0
    (adapter,) = tmp_path.glob("mine.*")
    assert len(adapter.read_text().splitlines()) <= 100
    text = (
        FILE.replace("q6", "q1")
        .replace('duckdb = "q1.duckdb.sql"\nrsp-js = "q1.rspql"\n', "")
        .replace("0.0", "50.0")
    )
    tests = read_tests(write_test(tmp_path, text), [f"engine={program} {adapter}"])
    (found,) = run_tests(tests, tmp_path / "out", Progress.silent())
    assert found["judged"]["strict"]["right"], found["failure"]
    assert found["judged"]["strict"]["windows"][0]["expected"] > 0


def test_the_limit_is_between_a_load_that_is_held_and_one_that_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pretend(tests: list[Any], out: Path, progress: Progress) -> list[dict[str, Any]]:
        (test,) = tests
        late = 10 if test.stations <= 730 else 6000
        windows = [{"delay_ms": late}]
        judged = {"right": True, "slide_ms": 5000, "windows": windows}
        return [{"missing": False, "failure": "", "judged": {"strict": judged}}]

    monkeypatch.setattr("yabench.limit.run_tests", pretend)
    (test, *_) = read_tests(built_in(Path("e1")))
    tries = sustainable(test, tmp_path, 100, 10_000, Progress.silent())
    held = max(stations for stations, right in tries.items() if right)
    refused = min(stations for stations, right in tries.items() if not right)
    assert held <= 730 < refused <= held * 1.25
    assert max(sustainable(test, tmp_path, 100, 300, Progress.silent())) == 300


def test_recorded_results_are_judged_alone_as_in_the_run(tmp_path: Path) -> None:
    file = write_test(tmp_path, FILE)
    (test,) = read_tests(file, ["engine=faulty-lossy"])
    (found,) = run_tests([test], tmp_path / "out", Progress.silent())
    records = generate(test.stations, test.interval_ms, test.duration_ms, test.seed)
    stream = tmp_path / "stream.arrow"
    write_stream(records, stream, stream)
    results = tmp_path / "out" / "test-1" / "faulty-lossy" / "run-1" / "results.jsonl"
    again = check("test-1", stream, results, tests=file)
    assert again.to_json() == found["judged"]["strict"]
    with pytest.raises(xs.InputError, match="has no test"):
        check("test-2", stream, results, tests=file)


def test_the_command_ends_without_reports_of_leaks(tmp_path: Path) -> None:
    stream, answers = tmp_path / "stream.arrow", tmp_path / "answers.json"
    write_stream(generate(3, 1000, 6000, 1), stream, stream)
    answers.write_text("[]")
    command = ["yabench", "check", "--test", "e1-small", "--tests", "e1", "--stream", str(stream)]
    done = subprocess.run(
        [sys.executable, "-m", "xstream", *command, "--answers", str(answers)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")


def test_bindings_of_rdf_engines_are_compared_as_records() -> None:
    iris = {"s": "ssw:System_7", "o": "ssw:Observation_AirTemperature_12", "other": "ssw:System_x"}
    found = as_records(Bag([binding_of(iris)]))
    assert found == Bag([binding_of({"s": 7, "o": 12, "other": "ssw:System_x"})])
