"""PIPELINE: the definition's answers everywhere, known leaks found, files, one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from leaks import LeakDetector, Pressure, evaluate, find, generate
from leaks.outcome import SURE_DB
from leaks.query import declare

import xstream as xs
from tests.apps.command import call
from tests.reference import applications

PRESSURE = generate(seconds=14.0, transients=6, leaks=3, snr_db=(30.0, 40.0), seed=4)


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_it_finds_what_the_definition_finds(scheduler: str, memory: str) -> None:
    # A large ratio and a low bar: many windows are told, not the leaks alone.
    how = LeakDetector(ratio=5.0, sigmas=0.0)
    wanted = applications.pipeline(
        PRESSURE.samples, how.window, how.overlap, how.level, how.guard, how.ratio, how.sigmas
    )
    found = find(PRESSURE, how, scheduler, memory)
    assert len(wanted) > 8
    assert [at for at, _ in found] == [at for at, _ in wanted]
    assert np.allclose([r for _, r in found], [r for _, r in wanted], rtol=1e-9)


@pytest.mark.parametrize("window", [1, 1000, 8192, 50_000])
def test_it_does_not_matter_how_the_stream_is_cut(window: int) -> None:
    query = xs.Query()
    stream = query.source(xs.io.array(PRESSURE.samples[:60_000], PRESSURE.rate_hz, window=window))
    out = declare(stream, LeakDetector(ratio=5.0)).collect()
    short = Pressure(PRESSURE.samples[:60_000], PRESSURE.rate_hz)
    assert query.run()[out] == find(short, LeakDetector(ratio=5.0))


@pytest.mark.parametrize("seed", range(4))
def test_every_leak_that_is_strong_enough_is_found_and_nothing_else(seed: int) -> None:
    pressure = generate(seconds=75.0, transients=30, leaks=15, snr_db=(SURE_DB, 50.0), seed=seed)
    outcome = evaluate(pressure, find(pressure))
    assert len(outcome.found) == 15
    assert not outcome.missed
    assert not outcome.false_alarms


@pytest.mark.parametrize("at", range(7_400, 8_500, 50))
def test_a_transient_on_the_border_of_windows_is_judged_once(at: int) -> None:
    """Whatever share of it a window sees: a sound echo is no leak, and a leak is told once."""
    from leaks.pressure import LEVEL_BAR, NOISE_BAR, _add_dip

    for echo, told in ((0.6, 0), (0.1, 1)):
        rng = np.random.default_rng(at)
        samples = LEVEL_BAR + NOISE_BAR * rng.standard_normal(24_000)
        _add_dip(samples, at, 100 * NOISE_BAR)
        _add_dip(samples, at + 150, 100 * NOISE_BAR * echo)
        assert len(find(Pressure(samples, 8_000.0))) == told


def test_the_command_writes_and_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "main.npy"
    assert call(monkeypatch, "leaks", "generate", path, "--transients", 6, "--leaks", 2) == 0
    rows = path.with_suffix(".csv").read_text().splitlines()[1:]
    known = [int(row.split(",")[0]) for row in rows if row.endswith(",1")]
    capsys.readouterr()
    assert call(monkeypatch, "leaks", "find", path, "--json") == 0
    found = [row["sample"] for row in json.loads(capsys.readouterr().out)]
    assert len(found) == len(known) == 2
    assert all(abs(a - b) < 64 for a, b in zip(found, known, strict=True))
    lines = ["time,bar", *(f"{i},{x:.6f}" for i, x in enumerate(np.load(path)))]
    (tmp_path / "main.txt").write_text("\n".join(lines))
    assert call(monkeypatch, "leaks", "find", tmp_path / "main.txt") == 0
    assert "2 leaks" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("find", "missing.npy"), "missing.npy does not exist"),
        (("find", "sound.wav"), "sound.wav cannot be read as pressure: it is neither a .npy file"),
        (("find", "sound.npy"), "sound.npy cannot be read as pressure"),
        (("find", "table.npy"), "not a row of numbers"),
        (("find", "words.csv"), "words.csv cannot be read as pressure"),
        (("find", "binary.csv"), "binary.csv cannot be read as pressure"),
        (("generate", "x.npy", "--seconds", "nan"), "--seconds must be from 1 to 3,600, not nan"),
        (("generate", "x.npy", "--seconds", "1e12"), "--seconds must be from 1 to 3,600"),
        (("generate", "x.npy", "--transients", "-1"), "--transients must be from 0 to 3,200"),
        (("generate", "x.npy", "--seed", "-1"), "--seed must be from 0"),
        (("generate", "/proc/none/x.npy"), "/proc/none/x.npy cannot be written"),
        (("generate", "taken.npy"), "taken.csv cannot be written: it is a directory"),
        (("evaluate", "--seconds", "3"), "--seconds must be from 5 to 3,600, not 3"),
        (("generate", "x.npy", "--seconds", "5"), "20 transients need more than"),
        (("generate", "x.npy", "--leaks", "30"), "30 of 20 transients"),
        (("generate", "x.wav"), "must end in .npy"),
        (("find", "x.npy", "--rate-hz", "0"), "--rate-hz must be from 0.001"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("sound.wav", "sound.npy"):
        Path(name).write_bytes(b"RIFF" + bytes(range(256)) * 4)
    Path("binary.csv").write_bytes(b"a,b\n" + bytes(range(128, 256)) * 4)
    Path("words.csv").write_text("a,b\n1,two\n")
    np.save("table.npy", np.zeros((2, 2)))
    Path("taken.csv").mkdir()
    there = sorted(Path().rglob("*"))
    assert call(monkeypatch, "leaks", *arguments) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.strip().isprintable()
    assert sorted(Path().rglob("*")) == there


@pytest.mark.parametrize(
    "wrong", [{"window": 100}, {"overlap": 8192}, {"ratio": 0.0}, {"sigmas": -1.0}], ids=str
)
def test_a_detector_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(xs.InputError):
        LeakDetector(**wrong)  # type: ignore[arg-type]
