"""The strict rating: nothing is shared, finished steps are kept, and every answer counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from linearroad.generation.job import generate
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import write_json
from linearroad.generation.parameters import TrafficParameters
from linearroad.rating import strict
from linearroad.rating.job import RatingOptions
from linearroad.rating.page import write_page
from linearroad.rating.strict import rate_strictly

from tests.apps.command import call
from tests.linearroad.rating.test_job import command
from tests.linearroad.rating.test_page import rating as page_rating
from tests.linearroad.rating.test_page import step, words
from xstream.errors import InputError

ROWS = 5000
RESPONSE = {
    "balances": {"p50": 0.1, "p99": 0.2, "p999": 0.3, "p9999": 0.4, "worst": 0.5, "limit": 5,
                 "late": 0, "within_1_s": 1.0},
}  # fmt: skip


class Commands:
    """Stands in for the commands of the steps: writes what they write, and notes their names."""

    def __init__(self, late: str = "", right: bool = True) -> None:
        self.called: list[str] = []
        self.late, self.right = late, right

    def __call__(self, words: list[str], _: Any) -> list[str]:
        name = words[1]
        self.called.append(name)
        options = dict(pairwise(words))
        getattr(self, name)(options)
        return []

    def generate(self, options: dict[str, str]) -> None:
        base = Path(options["--out"])
        parameters: dict[str, Any] = {
            "expressways": int(options["--expressways"]), "minutes": int(options["--minutes"]),
        }  # fmt: skip
        if "--from-minute" in options:
            parameters["from_minute"] = int(options["--from-minute"])
        write_base(base, parameters)

    def run(self, options: dict[str, str]) -> None:
        out = Path(options["--out"])
        out.mkdir(parents=True, exist_ok=True)
        (out / "validation.json").unlink(missing_ok=True)
        (out / "output.csv").write_text("0,1,2\n" * 1000)
        (out / "timeline.csv").write_text(
            "wall_s,stream_s,lag_s,rows,answers,memory_bytes,cpu_s,steal_s,major_faults,"
            "minor_faults,read_bytes,write_bytes\n60,60,0.1,5000,1000,1000000,30,0,0,0,0,0\n"
        )
        summary = {
            "response_s": RESPONSE, "worst_lag_s": 0.1, "reports": 4000,
            "reports_per_second": 66.0, "peak_memory_bytes": 10**6, "stage_ns": {},
            "answers": {"balances": 1000}, "longest": None, "first_late": self.late,
            "interrupted": bool(self.late), "rows_by_type": {"position reports": 4000},
        }  # fmt: skip
        (out / "summary.json").write_text(json.dumps(summary))

    def validate(self, options: dict[str, str]) -> None:
        verdict = "right: all 1,000 answers" if self.right else "WRONG: 1 answer is missing"
        found = {"rows": ROWS, "covered": "", "verdict": verdict, "passed": self.right}
        (Path(options["--output"]) / "validation.json").write_text(json.dumps(found))


def write_base(base: Path, parameters: dict[str, Any]) -> None:
    """What a rating reads of generated traffic."""
    totals = {"reports": 4000, "vehicles": 900, "queries": 40, "rows": ROWS}
    store = Layout(base).store(0)
    store.mkdir(parents=True)
    (store / "tolls.npy").write_bytes(b"0" * 100)
    manifest = {"version": 1, "complete": True, "parameters": parameters, "totals": totals,
                "store": [{"files": []}]}  # fmt: skip
    write_json(Layout(base).manifest, manifest)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Commands]:
    """Makes stand-ins for the commands."""

    def made(**options: Any) -> Commands:
        stand_in = Commands(**options)
        monkeypatch.setattr(strict, "call", stand_in)
        monkeypatch.setattr("linearroad.rating.steps.call", stand_in)
        return stand_in

    return made


def options_in(folder: Path, **more: Any) -> RatingOptions:
    return RatingOptions(folder / "base", folder / "out", **{"speed": 1.0, "strict": True, **more})


def quiet(_: str) -> None:
    """Says nothing."""


def test_every_step_runs_once_and_the_same_command_repeats_none(
    tmp_path: Path, commands: Callable[..., Commands]
) -> None:
    first = commands()
    rating = rate_strictly(options_in(tmp_path, expressways=60), quiet)
    assert first.called == ["generate", "run", "validate"]
    assert rating.sentence() == "L = 60 by the strict protocol: every answer right and in time"
    stored = json.loads((tmp_path / "out" / "rating.json").read_text())["rating"]
    assert (stored["strict"], stored["history_is_shared"], stored["expressways"]) == (
        True,
        False,
        60,
    )
    assert set(stored["costs"]) == {"generation_s", "run_s", "validation_s", "answer_bytes"}
    assert stored["costs"]["answer_bytes"] == 6000
    again = commands()
    repeated = rate_strictly(options_in(tmp_path, expressways=60), quiet)
    assert again.called == []
    assert repeated.sentence() == rating.sentence()
    assert repeated.costs == rating.costs


def test_a_rating_goes_on_after_the_step_that_was_interrupted(
    tmp_path: Path, commands: Callable[..., Commands], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = commands()

    def interrupt(_: dict[str, str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stopped, "validate", interrupt)
    rating = rate_strictly(options_in(tmp_path, expressways=2), quiet)
    assert rating.interrupted
    assert rating.sentence() == "interrupted: no L has passed so far"
    rest = commands()
    assert rate_strictly(options_in(tmp_path, expressways=2), quiet).expressways == 2
    assert rest.called == ["validate"]


def test_a_run_at_another_speed_or_of_another_base_is_a_new_one(
    tmp_path: Path, commands: Callable[..., Commands]
) -> None:
    commands()
    rate_strictly(options_in(tmp_path, expressways=2), quiet)
    faster = commands()
    rating = rate_strictly(options_in(tmp_path, expressways=2, speed=4.0), quiet)
    assert faster.called == ["run", "validate"]
    assert "by the strict protocol, at 4 times the pace" in rating.sentence()
    manifest = json.loads(Layout(tmp_path / "base").manifest.read_text())
    manifest["parameters"]["seed"] = 7
    write_json(Layout(tmp_path / "base").manifest, manifest)
    other = commands()
    rate_strictly(options_in(tmp_path, speed=4.0), quiet)
    assert other.called == ["run", "validate"]


def test_late_and_wrong_answers_do_not_pass(
    tmp_path: Path, commands: Callable[..., Commands]
) -> None:
    late = commands(late="second 7: a balance came after 6.1 stream seconds")
    rating = rate_strictly(options_in(tmp_path / "late", expressways=2), quiet)
    assert late.called == ["generate", "run"]
    assert (rating.expressways, rating.steps[0].passed) == (0, False)
    assert "6.1 stream seconds" in rating.steps[0].why
    commands(right=False)
    rating = rate_strictly(options_in(tmp_path / "wrong", expressways=2), quiet)
    assert (rating.expressways, rating.steps[0].passed) == (0, False)
    assert rating.steps[0].why == "WRONG: 1 answer is missing"
    assert rating.sentence().startswith("no L has passed")


def test_a_run_that_is_refused_is_no_rating(
    tmp_path: Path, commands: Callable[..., Commands], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a run of an earlier rating that was killed, which still writes to the folder."""
    refusing = commands()
    monkeypatch.setattr(refusing, "run", lambda _: None)
    with pytest.raises(InputError, match="it ended without a word"):
        rate_strictly(options_in(tmp_path, expressways=2), quiet)
    assert not (tmp_path / "out" / "rating.json").exists()
    commands()
    assert rate_strictly(options_in(tmp_path, expressways=2), quiet).expressways == 2


def test_a_quick_rating_says_which_minutes_it_is_about(
    tmp_path: Path, commands: Callable[..., Commands]
) -> None:
    commands()
    rating = rate_strictly(options_in(tmp_path, expressways=2, quick=True), quiet)
    assert rating.manifest["parameters"] == {"expressways": 2, "minutes": 10, "from_minute": 170}
    assert rating.sentence().startswith("quick, by minutes 170 to 180 alone: L = 2 by the strict")
    with pytest.raises(InputError, match="has 10 minutes, and a rating without --quick takes 180"):
        rate_strictly(options_in(tmp_path, expressways=2), quiet)
    with pytest.raises(InputError, match="has 2 expressways, not 3"):
        rate_strictly(options_in(tmp_path, expressways=3, quick=True), quiet)


def test_the_page_says_that_nothing_is_shared(tmp_path: Path) -> None:
    costs = {"generation_s": 900.0, "run_s": 10_800.0, "validation_s": 700.0, "answer_bytes": 5e9}
    full = step(60, "full", from_minute=0)
    found = page_rating(full, strict=True, costs=costs, history_is_shared=False, memory=[])
    write_page(tmp_path / "rating.html", found, [[]])
    text = words((tmp_path / "rating.html").read_text())
    assert "Strict protocol: no expressway is a copy" in text
    assert "5.0 GB of answers written to a file" in text
    assert "It took 900 s to generate, 10,800 s to run, 700 s to validate." in text
    assert "copies" not in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--expressways", "3"), "--expressways requires --strict"),
        (("--strict", "--from", "3"), "--from cannot be used with --strict"),
        (("--strict", "--to", "3"), "--to cannot be used with --strict"),
        (("--strict", "--explain", "3"), "--explain cannot be used with --strict"),
        (("--strict",), "has no manifest.json"),
    ],
)
def test_options_that_have_no_meaning_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    sentence: str,
) -> None:
    place = ("--base", tmp_path / "base", "--out", tmp_path / "out")
    assert call(monkeypatch, "linearroad", "rate", *place, *options) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_real_expressways_are_run_and_validated(spark_session: object, tmp_path: Path) -> None:
    base, out = tmp_path / "base", tmp_path / "rating"
    parameters = TrafficParameters(expressways=2, minutes=2, seed=3, from_minute=40)
    generate(parameters, base, partitions=2, history=True)
    options = ("--strict", "--base", base, "--out", out, "--speed", "4")
    done = command(*options)
    assert done.returncode == 0, done.stderr
    assert "a trial of 2 minutes; a rating takes 180: L = 2 by the strict protocol" in done.stdout
    assert "all answers: right: all " in done.stdout
    lines = (out / "run" / "output.csv").read_text().splitlines()
    stored = json.loads((out / "rating.json").read_text())["rating"]
    assert len(lines) == stored["steps"][0]["answers"] > 0
    again = command(*options)
    assert again.returncode == 0, again.stderr
    assert "the run is finished" in again.stderr
