"""A rating of small traffic, from the command line to the page."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linearroad.generation.job import generate
from linearroad.generation.manifest import read_json
from linearroad.generation.parameters import TrafficParameters
from linearroad.output.digests import read_digests, write_digests
from linearroad.rating import cluster, steps
from linearroad.rating.box import PROBE_MINUTES
from linearroad.rating.job import Rating, RatingOptions, checked_base, explain, rate
from linearroad.rating.originals import Originals, prepare
from linearroad.rating.steps import Step
from linearroad.run.cluster import Job, run_on_cluster
from linearroad.run.job import RunOptions

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


@pytest.fixture(scope="module")
def originals(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Originals:
    """The originals, run by processes of this machine."""
    folder = tmp_path_factory.mktemp("reference") / "reference"
    return prepare(base, checked_base(base), folder, PROBE_MINUTES, lambda _: None)


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
    base: Path, originals: Originals, tmp_path: Path
) -> None:
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


def on_cluster(base: Path, out: Path, **options: Any) -> RatingOptions:
    """Options of a rating of the session's two cores, as if they were a cluster."""
    given = {"quick": True, "threads": 1, "speed": 1e6, "first": 4, "last": 7, **options}
    return RatingOptions(base, out, master="local[2]", **given)


def test_originals_that_ran_as_a_task_are_those_of_one_process(
    base: Path, originals: Originals, tmp_path: Path
) -> None:
    manifest = checked_base(base)
    with cluster.on_cluster(on_cluster(base, tmp_path)) as runs:
        task = runs.prepare(manifest, lambda _: None)
        assert runs.slots == 2
        assert 0 < runs.free_bytes() <= runs.machine()["memory_bytes"] // 2
    np.testing.assert_array_equal(task.digests, originals.digests)
    assert task.digests.any()
    assert task.state_minute == originals.state_minute
    assert {path.name for path in task.state.iterdir()} == {
        path.name for path in originals.state.iterdir()
    }


def test_a_cluster_that_is_too_slow_stops_at_the_first_late_answer_and_is_resumed(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = on_cluster(base, tmp_path / "rating")
    rating = rate(options, lambda _: None)
    # The smallest step has a copy in each of the two slots.
    assert [(step.expressways, step.passed) for step in rating.steps] == [(4, False)]
    (step,) = rating.steps
    assert step.why.startswith("second ")
    assert rating.sentence().endswith("no L has passed")
    assert rating.as_dict()["runs_at_once"] == 2
    assert (options.out / "rating.json").is_file()

    def again(*_: Any) -> None:
        pytest.fail("it is complete")

    monkeypatch.setattr(cluster.OnCluster, "prepare", again)
    monkeypatch.setattr(cluster.OnCluster, "step", again)
    resumed = rate(replace(options, resume=True), lambda _: None)
    assert resumed.steps == [step]
    assert resumed.timelines == rating.timelines
    with pytest.raises(InputError, match=r"with --speed 1000000\.0, not 2\.0: begin"):
        rate(replace(options, resume=True, speed=2.0), lambda _: None)


def test_one_differing_original_of_a_cluster_fails_a_step_and_is_located(
    base: Path, originals: Originals, tmp_path: Path
) -> None:
    job = Job(base, tmp_path / "step", base, None, None, RunOptions(
        answers="digest", expressways=4, from_state=originals.state,
    ))  # fmt: skip
    run_on_cluster(job, None, 2)
    step = Step(4, "probe", 1.0, originals.state_minute, MINUTES)
    summary = read_json(job.out / "summary.json")
    cluster.compare(step, summary, job.out, originals.digests)
    assert (step.digests["compared"], step.digests["different"], step.why) == (4 * 5, 0, "")
    first = job.out / "groups" / "group-00000" / "digests.parquet"
    found = read_digests(first, 2, MINUTES)
    for i, more in enumerate((0, 12345, 12345 * 17, 12345 * 17 * 17)):
        found[1, 1, 0, i] += np.uint64(more)
    write_digests(first, found)
    cluster.compare(step, summary, job.out, originals.digests)
    located = "expressway 1, minute 2: the toll notification of vehicle 17 of the original differs"
    assert step.digests["first"] == [located]
    assert located in step.why


@pytest.mark.slow
def test_a_cluster_is_rated_validated_and_confirmed(base: Path, tmp_path: Path) -> None:
    # At this speed the limits are at least one wall-clock second, which suffices on a busy machine.
    rating = rate(on_cluster(base, tmp_path, speed=4.0, quick=False), lambda _: None)
    assert (rating.expressways, rating.confirmed) == (4, True)
    assert rating.verdict is not None
    assert rating.verdict.startswith("right: all ")
    assert [(step.kind, step.passed) for step in rating.steps] == [("probe", True), ("full", True)]
    for step in rating.steps:
        minutes = step.to_minute - step.from_minute
        assert step.digests == {"compared": 4 * 5 * minutes, "different": 0, "first": []}
    assert "this cluster" in (tmp_path / "rating.html").read_text()


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
