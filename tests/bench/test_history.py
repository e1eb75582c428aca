"""Benchmarks over time: records, what is slower beyond noise, and instruction counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import instructions
from tests.apps.command import call
from tests.report.figures import MACHINE
from xstream.bench import commits, history
from xstream.errors import InputError

RNG = np.random.default_rng(7)


def rates(mean: float, noise: float = 0.01, rounds: int = 9) -> list[float]:
    return (mean * np.exp(RNG.normal(0, noise, rounds))).tolist()


def a_record(counts: dict[str, int] | None = None, **found: list[float]) -> dict[str, Any]:
    told = {"toolchain": "cc 1", "counts": counts} if counts else None
    return {"machine": MACHINE, "loads": [0.1], "rates": found, "instructions": told}


def verdicts(changes: list[history.Change]) -> dict[str, str]:
    return {change.name: change.verdict for change in changes}


@pytest.mark.parametrize("in_turns", [True, False])
def test_what_is_slower_is_told_and_noise_is_not(in_turns: bool) -> None:
    before = a_record({"hops": 1000, "append": 1000}, a=rates(100), b=rates(100), c=rates(100))
    after = a_record({"hops": 1020, "append": 1001}, a=rates(90), b=rates(100), c=rates(120))
    found = verdicts(history.compare(before, after, in_turns))
    assert found == {"a": "slower", "b": "same", "c": "faster", "hops": "slower", "append": "same"}


def test_turns_remove_what_disturbs_both() -> None:
    load = np.exp(RNG.normal(0, 0.5, 9))
    before, after = (np.array(rates(mean)) * load for mean in (100, 90))
    slower, half = history.slowdown(before.tolist(), after.tolist(), in_turns=True)
    assert slower == pytest.approx(1 / 9, abs=0.03)
    assert half < slower
    _, alone = history.slowdown(before.tolist(), after.tolist(), in_turns=False)
    assert alone > slower


def test_equal_versions_are_rarely_called_slower() -> None:
    wrong = sum(
        history.Change("x", 1, 1, *history.slowdown(rates(5), rates(5), True), "samples/s").verdict
        != "same"
        for _ in range(300)
    )
    assert wrong < 30


def test_counts_of_different_toolchains_are_not_compared() -> None:
    before, after = a_record({"hops": 1000}, a=[1.0, 1.0]), a_record({"hops": 2000}, a=[1.0, 1.0])
    after["instructions"]["toolchain"] = "cc 2"
    assert verdicts(history.compare(before, after, True)) == {"a": "same"}


def test_the_command_compares_records_and_says_what_is_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = history.write_record(tmp_path / "1", a_record(a=rates(100), b=rates(50)))
    two = history.write_record(tmp_path / "2", a_record(a=rates(80), b=rates(50)))
    assert one.name == "2026-02-03T040506Z-abc1234.json"
    assert call(monkeypatch, "bench", "compare", one, two) == 1
    said = capsys.readouterr().out
    assert "Slower: a (samples/s)." in said
    assert "95 % interval" in said
    assert call(monkeypatch, "bench", "compare", one, one) == 0
    assert "Nothing is slower beyond the noise." in capsys.readouterr().out
    assert call(monkeypatch, "bench", "compare", one, two, "--json") == 1
    assert json.loads(capsys.readouterr().out)["changes"][0]["verdict"] == "slower"


def test_what_cannot_be_compared_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text("[]")
    good = history.write_record(tmp_path, a_record(a=[1.0, 2.0]))
    for a, b, wrong in (
        (tmp_path / "x.json", good, "is not a record"),
        (good, "HEAD", "not one of each"),
        ("no-such-commit", "HEAD", "neither a record"),
    ):
        assert call(monkeypatch, "bench", "compare", a, b) == 2
        error = capsys.readouterr().err
        assert wrong in error
        assert len(error.strip().splitlines()) == 1


def test_a_record_has_rates_commit_machine_and_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(history, "measure", lambda name: 5e6)
    monkeypatch.setattr(history, "instructions", lambda: None)
    options = ("--out", tmp_path, "--rounds", 2, "--only", "passchain")
    assert call(monkeypatch, "bench", "record", *options) == 0
    (path,) = tmp_path.glob("*.json")
    assert str(path) in capsys.readouterr().out
    found = history.read_record(path)
    assert found["rates"] == {"passchain": [5e6, 5e6]}
    assert len(found["loads"]) == 3
    assert {"processor", "commit", "load"} <= set(found["machine"])
    assert call(monkeypatch, "bench", "record", "--out", tmp_path, "--only", "quux") == 2
    assert "there is no recorded benchmark 'quux'" in capsys.readouterr().err


def test_commits_take_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    order: list[str] = []

    class Trees:
        def __enter__(self) -> list[Path]:
            for name in "ab":
                (tmp_path / name).mkdir()
            return [tmp_path / "a", tmp_path / "b"]

        def __exit__(self, *_: object) -> None:
            pass

    def measured(name: str, tree: Path, cache: Path) -> float:
        order.append(tree.name)
        return 1.0

    monkeypatch.setattr(commits, "_built", lambda *_: Trees())
    monkeypatch.setattr(commits, "measure", measured)
    monkeypatch.setattr(commits, "instructions", lambda tree: None)
    one, two = commits.measure_commits("1" * 40, "2" * 40, 3, ["passchain"], lambda line: None)
    assert "".join(order) == "baabbaab"  # the first pair warms up
    assert one["rates"] == two["rates"] == {"passchain": [1.0] * 3}
    assert one["machine"]["commit"] == "1" * 10


def test_every_recorded_benchmark_is_measured_in_a_process_of_its_own() -> None:
    history.BENCHMARKS["passchain"] = ("--samples", "4096")
    try:
        assert history.measure("passchain") > 0
    finally:
        history.BENCHMARKS["passchain"] = ("--seconds", "0.1")
    with pytest.raises(KeyError):
        history.measure("no-such-benchmark")


# -- instructions --------------------------------------------------------------------------------


def test_counts_are_stored_by_toolchain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(instructions, "STORED", tmp_path / "counts.json")
    instructions.store("one", {"hops": 1})
    instructions.store("two", {"hops": 2})
    assert instructions.stored("one") == {"hops": 1}
    assert instructions.stored("three") is None
    assert instructions.differences({"hops": 1000}, {"hops": 1029}) == []
    assert len(instructions.differences({"hops": 1000}, {"hops": 1031})) == 1


def test_the_stored_counts_have_all_paths() -> None:
    for counts in json.loads((instructions.HERE / "counts.json").read_text()).values():
        assert set(counts) == set(instructions.PATHS)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_a_slower_core_is_found(tmp_path: Path) -> None:
    """A loop of twenty steps in each `subseg` is more than 3 %."""
    before = instructions.counted()
    core = tmp_path / "xstream"
    wanted = shutil.ignore_patterns("*.py", "__pycache__", "*.so")
    shutil.copytree(instructions.ROOT / "xstream", core, ignore=wanted)
    begin = "xs_seg *xs_seg_subseg(xs_seg *seg, int64_t start, int64_t width)\n{\n"
    segment = next(path for path in (core / "sigseg").glob("*.c") if begin in path.read_text())
    loop = "    for (volatile int i = 0; i < 20; i++)\n        ;\n"
    slowed = segment.read_text().replace(begin, begin + loop)
    assert slowed != segment.read_text()
    segment.write_text(slowed)
    found = instructions.differences(before, instructions.counted(tmp_path))
    assert any(line.startswith("subseg takes") for line in found)


def test_a_commit_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="neither a record"):
        commits.commit_of("no-such-commit")
