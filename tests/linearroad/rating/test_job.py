"""A rating of small traffic, from the command line to the page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from linearroad.generation.job import generate
from linearroad.generation.parameters import TrafficParameters
from linearroad.output.digests import read_digests, write_digests
from linearroad.rating import steps
from linearroad.rating.job import Rating, RatingOptions, checked_base, explain
from linearroad.rating.originals import prepare
from linearroad.rating.steps import Step

from xstream.errors import InputError

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

CODE = "import sys; from xstream.cli import main; sys.exit(main())"
MINUTES = 2


@pytest.fixture(scope="module")
def base(spark_session: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two expressways of two minutes within their first hour, with history."""
    out = tmp_path_factory.mktemp("base") / "base"
    parameters = TrafficParameters(expressways=2, minutes=MINUTES, seed=3, from_minute=40)
    generate(parameters, out, partitions=2, history=True)
    return out


def command(*options: str | Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", CODE, "linearroad", "rate", *map(str, options)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_quick_trial_finds_what_it_is_allowed_to_try(base: Path, tmp_path: Path) -> None:
    out = tmp_path / "rating"
    # At this speed the limits are at least one wall-clock second, which suffices on a busy machine.
    options = ("--base", base, "--out", out, "--quick", "--from", "2", "--to", "4")
    done = command(*options, "--speed", "4", "--threads", "2")
    assert done.returncode == 0, done.stderr
    assert "a trial, not a rating (2 generated expressways of 2 minutes" in done.stdout
    assert "L = 4 at 4 times the pace: every answer in time" in done.stdout
    assert "which were not validated" in done.stdout
    assert "right" not in done.stdout
    rating = json.loads((out / "rating.json").read_text())["rating"]
    assert (rating["expressways"], rating["passed"], rating["confirmed"]) == (4, True, None)
    assert rating["base"]["expressways"] == 2
    assert rating["history_is_shared"] is True
    assert rating["validated"] is None
    assert [step["expressways"] for step in rating["steps"]] == [2, 4]
    for step in rating["steps"]:
        assert (step["kind"], step["from_minute"], step["to_minute"]) == ("probe", 1, MINUTES)
        assert step["digests"]["compared"] == step["expressways"] * 5
        assert step["digests"]["different"] == 0
        assert step["response_s"]["balances"]["worst"] < 5
        assert step["peak_memory_bytes"] > 0
    assert "L = 4" in (out / "rating.html").read_text()


@pytest.mark.slow
def test_what_probes_find_is_validated_and_confirmed_by_a_full_stream(
    base: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rating"
    options = ("--base", base, "--out", out, "--from", "4", "--to", "4", "--speed", "4")
    done = command(*options)
    assert done.returncode == 0, done.stderr
    rating = json.loads((out / "rating.json").read_text())["rating"]
    assert (rating["expressways"], rating["confirmed"]) == (4, True)
    assert rating["validated"].startswith("right: all ")
    kinds = [(step["kind"], step["from_minute"], step["passed"]) for step in rating["steps"]]
    assert kinds == [("probe", 1, True), ("full", 0, True)]
    again = command(*options, "--quick", "--validated", out / "originals")
    assert again.returncode == 0, again.stderr
    assert "originals' answers: right: all" in again.stdout.replace("\n", " ")
    nowhere = command(*options, "--quick", "--validated", tmp_path)
    assert nowhere.returncode == 2
    assert "was not validated: it has no validation.json" in nowhere.stderr


@pytest.mark.slow
def test_too_much_for_the_machine_does_not_pass_and_says_which_second(
    base: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rating"
    done = command("--base", base, "--out", out, "--quick", "--to", "2", "--speed", "1000000")
    assert done.returncode == 1, done.stderr
    assert "no L has passed" in done.stdout
    (step,) = json.loads((out / "rating.json").read_text())["rating"]["steps"]
    assert step["passed"] is False
    assert "stream seconds, and" in step["why"]
    assert step["why"].startswith("second ")


def test_one_differing_answer_in_one_copy_fails_a_step_and_is_located(
    base: Path, tmp_path: Path
) -> None:
    originals = prepare(base, checked_base(base), tmp_path / "reference", 1, lambda _: None)
    place = tmp_path / "step"
    run = ("linearroad", "run", "--input", base, "--history", base, "--answers", "digest")
    options = ("--expressways", "4", "--from-state", originals.state, "--out", place)
    steps.call([str(word) for word in (*run, *options)], lambda _: None)
    step = Step(4, "probe", 1.0, originals.state_minute, MINUTES)
    steps._compare(step, place / "digests.parquet", originals.digests)
    assert step.digests == {"compared": 4 * 5, "different": 0, "first": []}
    assert not step.why
    found = read_digests(place / "digests.parquet", 4, MINUTES)
    # Simulates a different answer for vehicle 17 of the original, in one copy only.
    weight, who = 12345, 17
    for i, more in enumerate((0, weight, weight * who, weight * who * who)):
        found[3, 1, 0, i] += np.uint64(more)
    write_digests(place / "digests.parquet", found)
    steps._compare(step, place / "digests.parquet", originals.digests)
    assert step.digests["different"] == 1
    located = "expressway 3, minute 2: the toll notification of vehicle 17 of the original differs"
    assert step.digests["first"] == [located]
    assert located in step.why


def test_memory_is_accounted_for_line_by_line(base: Path) -> None:
    done = command("--base", base, "--explain", "1000")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("L = 1,000: ")
    assert "bytes per vehicle seen" in done.stdout
    assert "the largest L that fits is" in done.stdout
    told = json.loads(command("--base", base, "--explain", "1000", "--json").stdout)
    assert told["total_bytes"] == pytest.approx(sum(told["bytes"].values()), rel=1e-6)
    account, most = explain(base, most_that_fits := told["largest_that_fits"])
    assert account.expressways == most_that_fits
    assert abs(most - most_that_fits) < 0.2 * most


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--explain", "3"), "L must be a multiple of the 2 expressways"),
        (("--from", "1"), "--from must be at least 2, the expressways of the base, not 1"),
        (("--from", "10", "--to", "4"), "--from 10 must not be greater than --to 4"),
    ],
)
def test_options_that_do_not_fit_the_base_get_one_sentence(
    base: Path, tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    done = command("--base", base, "--out", tmp_path / "out", *options)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_base_that_cannot_be_rated_is_refused(generated: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no history: generate it with --history"):
        checked_base(generated)
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        checked_base(tmp_path)


def test_a_rating_is_named_as_what_it_is(base: Path, tmp_path: Path) -> None:
    manifest = checked_base(base)
    full = manifest | {"parameters": manifest["parameters"] | {"expressways": 10, "minutes": 180}}
    rating = Rating(
        RatingOptions(base, tmp_path), full, expressways=900, confirmed=True, verdict="right"
    )
    assert rating.sentence() == "L = 900 at 10 times the pace: every answer right and in time"
    rating.confirmed = False
    assert rating.sentence().startswith("not confirmed by a full stream: L = 900")
    quick = Rating(RatingOptions(base, tmp_path, quick=True), full, expressways=900)
    assert quick.sentence().startswith("quick, by probe runs alone: L = 900")
    slow = Rating(
        RatingOptions(base, tmp_path, speed=1.0), full, expressways=5000, confirmed=True,
        verdict="right",
    )  # fmt: skip
    assert slow.sentence() == "L = 5,000: every answer right and in time"
    assert Rating(RatingOptions(base, tmp_path), full).sentence() == "no L has passed"


@pytest.mark.slow
def test_a_base_that_ends_in_a_half_is_rated_in_halves(
    spark_session: object, tmp_path: Path
) -> None:
    base, out = tmp_path / "base", tmp_path / "rating"
    parameters = TrafficParameters.of_l(1.5, minutes=MINUTES, seed=3, from_minute=40)
    generate(parameters, base, partitions=2, history=True)
    options = ("--base", base, "--out", out, "--quick", "--speed", "4")
    done = command(*options, "--from", "1.5", "--to", "4.5")
    assert done.returncode == 0, done.stderr
    assert "(1.5 generated expressways of 2 minutes" in done.stdout
    assert "L = 4.5 at 4 times the pace: every answer in time" in done.stdout
    rating = json.loads((out / "rating.json").read_text())["rating"]
    assert [step["expressways"] * step["share"] for step in rating["steps"]] == [1.5, 3.0, 4.5]
    page = (out / "rating.html").read_text()
    assert "L = 4.5" in page
    assert "1.5 expressways were generated" in page
    assert "The other 3 are copies of them" in page
    refused = command(*options, "--from", "1")
    assert "--from must be at least 1.5, the expressways of the base, not 1" in refused.stderr
    refused = command("--base", base, "--explain", "2")
    assert "L must be a multiple of the 1.5 expressways" in refused.stderr
    assert command("--base", base, "--explain", "4.5").stdout.startswith("L = 4.5: ")
