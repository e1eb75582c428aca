"""`compare`: cuts of the base, missing systems, wrong answers, interrupts, and what it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from linearroad.generation.job import generate
from linearroad.generation.layout import Layout
from linearroad.generation.parameters import TrafficParameters
from linearroad.peers import job, registry
from linearroad.peers.cuts import Cuts
from linearroad.peers.job import CompareOptions, compare
from linearroad.peers.probe import Probe
from linearroad.peers.system import System, nothing_missing

from tests.apps.command import call
from xstream.console.folder import locked_folder
from xstream.errors import InputError

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
MINUTES = 2
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def base(spark_session: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two expressways of two minutes, with history."""
    out = tmp_path_factory.mktemp("base") / "base"
    parameters = TrafficParameters(expressways=2, minutes=MINUTES, seed=3, from_minute=5)
    generate(parameters, out, partitions=2, history=True)
    return out


def options(base: Path, out: Path, *systems: System, **more: object) -> CompareOptions:
    # At this speed the limits are at least a second, which suffices on a busy machine.
    known = {
        "minutes": 1, "first": 1.0, "last": 1.0, "speed": 4.0, "validation": False,
        "screen_minutes": 0,
    }  # fmt: skip
    return CompareOptions(base, out, systems, **{**known, **more})  # type: ignore[arg-type]


def test_a_cut_has_whole_and_half_expressways_from_time_0(base: Path, tmp_path: Path) -> None:
    cuts = Cuts(base, tmp_path, 1, 1)
    cut = cuts.of(1.5)
    files = [Layout(cut.path).traffic(xway, "parquet") for xway in range(2)]
    whole, half = map(pq.read_table, files)
    original = pq.read_table(Layout(base).traffic(1, "parquet")).to_pandas()
    original = original[original.time >= 60]
    reports = original[(original.type == 0) & (original.dir == 0)]
    asked = original[(original.type != 0) & original.vid.isin(reports.vid)]
    assert half.num_rows == len(reports) + len(asked)
    assert set(whole["dir"].filter(whole["type"].to_numpy() == 0).to_pylist()) == {0, 1}
    times = half["time"].to_numpy()
    assert 0 <= times.min() < times.max() < 60
    assert (times[1:] >= times[:-1]).all()
    assert [cuts.rounded(rated) for rated in (0.2, 1.7, 2.0, 5.0)] == [0.5, 1.5, 2.0, 5.0]
    assert [(cuts.of(rated).rated, cuts.of(rated).copies) for rated in (1.5, 4.0, 5.0)] == [
        (1.5, 1), (2.0, 2), (1.0, 5),
    ]  # fmt: skip


def test_xstream_is_compared_and_a_missing_system_is_reported(base: Path, tmp_path: Path) -> None:
    absent = System("absent", "a system", lambda task: ["none"], lambda: "run apt install absent")
    said: list[str] = []
    found = compare(options(base, tmp_path, registry.SYSTEMS["xstream"], absent), said.append)
    page = found.write()
    ours, other = json.loads((tmp_path / "comparison.json").read_text())["comparison"]["systems"]
    assert ours["l"] == 1.0
    probe = ours["probes"][0]
    assert (probe["passed"], probe["different"], probe["compared"]) == (True, 0, 5)
    assert probe["cpu_s"] > 0
    assert probe["peak_memory_bytes"] > 0
    assert probe["start_s"] > 0
    assert other["missing"] == "run apt install absent"
    assert "absent is left out: run apt install absent" in said
    text = page.read_text()
    assert "xstream, by `serve`" in text
    assert "run apt install absent" in text


def test_wrong_answers_and_a_program_that_ends_do_not_pass(base: Path, tmp_path: Path) -> None:
    # The example has no history, so that expenditures and travel times are wrong.
    example = ROOT / "examples" / "linearroad_system.py"
    code = (
        "import sys, socket, runpy; s = socket.create_server(('127.0.0.1', 0));"
        "print('listening on 127.0.0.1:%d' % s.getsockname()[1], flush=True);"
        "socket.create_server, sys.argv = (lambda address: s), ['', '0'];"
        f"runpy.run_path({str(example)!r})"
    )
    simple = System("simple", "", lambda task: [sys.executable, "-c", code], nothing_missing,
                    marks=False)  # fmt: skip
    partial = System("partial", "", simple.program, nothing_missing, marks=False, leaves_out=(3, 4))
    broken = System("broken", "", lambda task: [sys.executable, "-c", "exit('no luck')"],
                    nothing_missing)  # fmt: skip
    limits = {"first": 0.5, "last": 0.5, "speed": 2.0}
    found = compare(options(base, tmp_path, simple, partial, broken, **limits), lambda line: None)
    wrong, right, ended = found.results
    assert wrong.rated == 0
    assert "digests are not right" in wrong.probes[0].why
    assert right.rated == 0.5
    assert right.leaves_out == "expenditures, travel times"
    assert "it ended at the start: no luck" in ended.probes[0].why


def test_short_probes_find_where_whole_ones_begin_and_nothing_is_repeated(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int, float]] = []

    def run_probe(system: System, rated: float, cuts: Cuts, *_: object) -> Probe:
        asked.append((system.name, cuts.minutes, rated))
        if len(asked) == stop_at:
            raise KeyboardInterrupt
        most = {("fast", 1): 6.0, ("fast", 2): 4.0, ("slow", 1): 1.0, ("slow", 2): 1.0}
        passed = rated <= most[system.name, cuts.minutes]
        return Probe(system.name, rated, cuts.minutes, passed=passed, wall_s=1.0)

    fast, slow = (System(name, "", lambda task: [], nothing_missing) for name in ("fast", "slow"))
    monkeypatch.setattr(job, "run_probe", run_probe)
    monkeypatch.setattr(job, "SYSTEMS", {"fast": fast, "slow": slow})
    limits = {"minutes": 2, "screen_minutes": 1, "first": 2.0, "last": 100.0}
    every = [
        *(("fast", 1, rated) for rated in (2.0, 4.0, 8.0, 6.0, 7.0)),
        *(("fast", 2, rated) for rated in (6.0, 5.0, 4.0)),
        *(("slow", 1, rated) for rated in (2.0, 1.0, 1.5)), ("slow", 2, 1.0),
    ]  # fmt: skip
    stop_at = 7
    assert compare(options(base, tmp_path, fast, slow, **limits), lambda line: None).interrupted
    stop_at, limits["resume"] = 0, True
    compare(options(base, tmp_path, fast, **limits), lambda line: None)
    assert asked == [*every[:7], *every[6:8]], "only the probe that was interrupted is repeated"
    found = compare(options(base, tmp_path, slow, **limits), lambda line: None)
    assert asked[9:] == every[8:]
    assert [(result.system.name, result.rated) for result in found.results] == [
        ("fast", 4.0), ("slow", 1.0),
    ]  # fmt: skip
    assert found.results[0].best == Probe("fast", 4.0, 2, passed=True, wall_s=1.0)
    found.write()
    with pytest.raises(InputError, match=r"is a comparison with speed 4\.0, not 2\.0"):
        compare(options(base, tmp_path, slow, speed=2.0, **limits), lambda line: None)
    for text in ("[]", "{}", '{"comparison": {}}', '{"comparison": 3}', "{"):
        (tmp_path / "comparison.json").write_text(text)
        with pytest.raises(InputError, match=r"comparison\.json"):
            compare(options(base, tmp_path, slow, **limits), lambda line: None)


def test_ctrl_c_stops_the_system_and_keeps_what_is_known(base: Path, tmp_path: Path) -> None:
    code = "import sys; from xstream.cli import main; sys.exit(main())"
    command = [
        *(sys.executable, "-c", code, "linearroad", "compare", "--base", str(base)),
        *("--out", str(tmp_path), "--systems", "xstream", "--minutes", "2", "--from", "1"),
        *("--to", "1", "--no-validation"),
    ]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        assert run.stderr is not None
        while "listens after" not in (line := run.stderr.readline()):
            assert line, "it ended before a system was started"
        started = psutil.Process(run.pid).children(recursive=True)
        time.sleep(1.0)
        os.killpg(run.pid, signal.SIGINT)
        said = run.stderr.read()
    assert run.returncode == 130, said
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(started, 10)
    assert not alive
    known = json.loads((tmp_path / "comparison.json").read_text())["comparison"]
    assert known["interrupted"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--systems", "nonesuch"], "there is no system 'nonesuch'"),
        (["--minutes", "3"], "has 2 minutes, so --minutes cannot be 3"),
        (["--minutes", "1", "--from-minute", "2"], "ends at minute 2"),
        (["--from", "0"], "--from must be from"),
    ],
)
def test_what_cannot_be_used_gets_one_sentence(
    base: Path, tmp_path: Path, words: list[str], said: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    given = ("--base", base, "--out", tmp_path / "out", *words)
    assert call(monkeypatch, "linearroad", "compare", *given) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1


def test_two_comparisons_do_not_write_to_one_folder(base: Path, tmp_path: Path) -> None:
    folder = locked_folder(tmp_path)
    with pytest.raises(InputError, match="another run is writing to"):
        compare(options(base, tmp_path), lambda line: None)
    os.close(folder)
    assert compare(options(base, tmp_path), lambda line: None).results == []


def test_a_base_without_history_is_refused(generated: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no history: generate it with --history"):
        Cuts(generated, tmp_path, 1, None)


def test_the_list_says_what_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "linearroad", "compare", "--list") == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()] == list(registry.SYSTEMS)
