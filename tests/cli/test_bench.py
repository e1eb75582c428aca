"""`xstream bench`: every command at a small size, its JSON, and one sentence for bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xstream as xs
from xstream.cli import main


@xs.kernel
def widened(window):  # type: ignore[no-untyped-def]
    return window.astype(np.float64)


SMALL = ("--trials", "2", "--samples", "4096", "--window", "256")


@pytest.fixture(autouse=True)
def _short_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty windows around the first word instead of nine seconds."""
    from xstream.bench import (
        elementwise,
        enginebench,
        live,
        loading,
        pythonop,
        ratecontrol,
        recording,
        table1,
    )

    piece = recording.counting_aloud()[24_000 : 24_000 + 20 * 256]

    def read(path: Path | None) -> Any:
        return (piece, recording.RATE_HZ) if path is None else recording.read_recording(path)

    for module in (elementwise, enginebench, live, loading, pythonop, ratecontrol, table1):
        monkeypatch.setattr(module, "read_recording", read)


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of `xstream ...`."""
    monkeypatch.setattr(sys, "argv", ["xstream", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def bench_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> dict[str, Any]:
    assert call(monkeypatch, "bench", *arguments, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


COMMANDS = {
    "passchain": (*SMALL, "--operators", "3"),
    "statfilter": (*SMALL, "--megabytes", "0.1"),
    "silencefilter": SMALL,
    "loading": ("--trials", "2", "--window", "256"),
    "elementwise": (*SMALL, "--megabytes", "0.1"),
    "enginebench": (*SMALL, "--operators", "20"),
    "pythonop": SMALL,
    "ratecontrol": ("--trials", "1", "--seconds", "0.002", "--window", "256"),
    "live": ("--trials", "2", "--seconds", "0.01", "--window", "256", "--operators", "20"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_json_has_the_rate_the_trials_and_the_figures(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = bench_json(monkeypatch, capsys, command, *COMMANDS[command])
    assert found["benchmark"] == command
    best = found["results"][0]
    assert found["samples_per_second"] == best["samples_per_second"] == max(best["trials"]) > 0
    assert 0 <= found["spread"] < 1
    assert 0 < found["loading_seconds"] < 300
    assert found["checked"]
    assert found["figures"]
    assert found["machine"]["cores"] > 0


@pytest.mark.parametrize("command", COMMANDS)
def test_elsewhere_than_on_a_terminal_it_prints_plain_columns(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "bench", command, *COMMANDS[command]) == 0
    printed = capsys.readouterr().out
    assert "samples/s" in printed
    assert "figure" in printed
    assert not set("│┃\x1b") & set(printed)


@pytest.mark.parametrize("scheduler", ["fifo", "fifo-slice", "rtc", "df"])
@pytest.mark.parametrize("memory", ["copy-always", "refcount-realloc"])
def test_every_benchmark_gives_right_answers_under_every_scheduler(
    scheduler: str,
    memory: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    how = ("--scheduler", scheduler, "--memory", memory, "--trials", "1")
    for command in ("passchain", "statfilter", "silencefilter"):
        rest = tuple(COMMANDS[command][2:])
        found = bench_json(monkeypatch, capsys, command, *rest, *how)
        assert any("NoSigSeg" in result["name"] for result in found["results"])


def test_kinds_of_operators(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in ("library", "kernel", "python"):
        found = bench_json(
            monkeypatch, capsys, "statfilter", *SMALL, "--megabytes", "0", "--kind", kind
        )
        assert kind in found["results"][0]["name"]


def test_elementwise_prints_the_ratios_to_bare_loops(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = bench_json(monkeypatch, capsys, "elementwise", *SMALL, "--megabytes", "0.1")
    floors = {figure["name"]: figure["floor"] for figure in found["figures"]}
    for place in ("in cache", "0.1 MB"):
        assert floors[f"1 map, each=True, {place}, of one bare loop into a buffer"] == 0.8
        assert floors[f"10 maps, each=True, {place}, of one bare loop into a buffer"] == 0.8
    names = [result["name"] for result in found["results"]]
    for form in ("xstream, kernel, np.float32", "xstream, each=True, fuse=False", "bare loop"):
        assert any(name.startswith(f"10 maps, {form}") for name in names)


def test_samples_of_another_type_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from xstream.bench.elementwise import Elementwise
    from xstream.bench.queries import Engine

    class Wider(Elementwise):
        def build(self, query: xs.Query, repeat: int) -> xs.Stream:
            return super().build(query, repeat).map(widened)

    samples = np.ones(8, np.float32)
    with pytest.raises(AssertionError, match="samples are float64, not float32"):
        Wider(samples, 4, operators=1).checked_samples(Engine())


def test_a_wav_file_as_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import soundfile

    path = tmp_path / "noise.wav"
    noise = np.random.default_rng(0).normal(0, 0.1, (1000, 2)).astype(np.float32)
    soundfile.write(path, noise, 8000)
    found = bench_json(
        monkeypatch, capsys, "statfilter", *SMALL, "--megabytes", "0", "--input", str(path)
    )
    assert found["settings"]["input"] == str(path)
    assert found["results"][0]["samples"] % (3 * 256) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("passchain", "--scheduler", "lifo"), "there is no scheduler 'lifo'"),
        (("passchain", "--memory", "none"), "memory manager 'none'"),
        (("passchain", "--kind", "fortran"), "--kind is one of library, kernel, python"),
        (("passchain", "--trials", "0"), "--trials must be from 1 to 10,000, not 0"),
        (("passchain", "--window", "0"), "--window must be from 1 to 1,048,576, not 0"),
        (("passchain", "--window", "99999999999999"), "--window must be from 1 to 1,048,576"),
        (("passchain", "--seconds", "nan"), "--seconds must be from 0.0001 to 60, not nan"),
        (("passchain", "--operators", "100000000"), "--operators must be from 1 to 10,000"),
        (("enginebench", "--operators", "10001"), "--operators must be from 1 to 10,000"),
        (("pythonop", "--trials", "1" + "0" * 40), "--trials must be from 1 to 10,000"),
        (("silencefilter", "--samples", "-1"), "--samples must be from 1 to 1,000,000,000,000"),
        (("silencefilter", "--alpha", "nan"), "--alpha must be from"),
        (("statfilter", "--beta", "inf"), "--beta must be from"),
        (("statfilter", "--megabytes", "-1"), "--megabytes must be from 0 to 512, not -1"),
        (("statfilter", "--megabytes", "nan"), "--megabytes must be from 0 to 512, not nan"),
        (("statfilter", "--input", "nowhere.wav"), "nowhere.wav does not exist"),
        (("statfilter", "--input", "/dev"), "/dev is not a file"),
        (("statfilter", "--input", __file__), "cannot be read as a sound file: Format not"),
        (("passchain", "--scheduler", "all"), "--scheduler all works with enginebench only"),
        (("pipeline", "--seconds", "1e9"), "--seconds must be from 0.0001 to 60, not 1e+09"),
        (("detectaudio", "--window", "262144"), "--window must be at most 60,000"),
        (
            ("detectaudio-blocks", "--window", "100"),
            "a block must hold whole windows of 32 samples",
        ),
        (("localise", "--window", "262144"), "--window must be at most 53,"),
        (("netmon", "--samples", "1000000000"), "netmon keeps the receptions of a trial"),
        (("passchain", "--clock", "sun"), "--clock must be wall or processor, not 'sun'"),
        (("passchain", "--peers", "--clock", "processor"), "--peers requires --clock wall"),
        (("ratecontrol", "--seconds", "0"), "--seconds must be from 0.0001 to 60, not 0"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: tuple[str, ...],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(monkeypatch, "bench", *arguments) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    lines = [line for line in said.err.splitlines() if ": preparation" not in line]
    assert len(lines) == 1
    assert not said.out


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from xstream.cli import app; from typer.testing import CliRunner;"
        "assert CliRunner().invoke(app, ['bench', 'passchain', '--help']).exit_code == 0;"
        "heavy = {'numba', 'numpy', 'pyspark', 'plotly', 'scipy', 'soundfile'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
