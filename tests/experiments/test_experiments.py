"""Experiments: folders, tidy tables, intervals, and every form giving one answer."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detectaudio.recording import generate as audio_recording
from leaks.pressure import generate as pressure_recording
from leaks.query import find as find_leaks

import xstream as xs
from tests.apps.command import call
from xstream.bench import experiment as experiments
from xstream.bench import results
from xstream.bench.experiment import (
    Experiment,
    Finding,
    Plot,
    Row,
    Scale,
    find_experiment,
    mean_and_interval,
    run_experiment,
    summary,
)
from xstream.bench.journal import Journal
from xstream.bench.report import Figure
from xstream.report.experiment_page import drawn, experiment_page, experiment_text

OURS = ("cache", "copycost", "fig6", "fig7", "fig8", "heavyhitter", "table1")


def test_every_experiment_of_the_paper_has_a_folder() -> None:
    assert set(OURS) <= set(experiments.experiments())
    for name in OURS:
        found = find_experiment(name)
        assert found.name == name
        assert len(found.paper.split()) > 30
        assert found.plots


def _noisy(scale: Scale) -> Iterator[Row]:
    for trial in range(scale.trials):
        for load in (1, 2):
            yield {"load": load, "how": "<b>", "trial": trial, "samples_per_second": load + trial}


def _found(rows: Sequence[Row]) -> Finding:
    means = summary(rows, ["load"])
    figure = Figure("twice", means[2,][0] / means[1,][0], "times", floor=1.0)
    return Finding([figure], ("load", "mean"), [(1, means[1,][0])], "It is `so` & <so>.")


OWN = Experiment(
    "own",
    "An experiment",
    "Nothing.",
    _noisy,
    (Plot("a plot", "load", "samples_per_second", ("how",), "y", "x", {"how": "<b>"}),),
    _found,
)


def test_the_table_has_every_trial_with_every_parameter_machine_and_commit() -> None:
    outcome = run_experiment(OWN, Scale(trials=3))
    rows = list(csv.DictReader(io.StringIO(outcome.to_csv())))
    assert len(rows) == 6
    wanted = {"load", "how", "trial", "samples_per_second", "experiment", "scale", "clock",
              "processor", "cores", "commit", "measured"}  # fmt: skip
    assert wanted <= set(rows[0])
    assert all(row["experiment"] == "own" for row in rows)
    assert [row["load"] for row in rows] == ["1", "2"] * 3  # not the machine's
    assert float(rows[0]["machine_load"]) >= 0


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        mean, half = mean_and_interval(rng.normal(3.0, 2.0, 5).tolist())
        inside += abs(mean - 3.0) <= half
    assert 0.92 < inside / 400 < 0.98
    assert mean_and_interval([4.0]) == (4.0, 0.0)


def test_a_plot_shows_means_of_the_rows_that_belong_to_it() -> None:
    rows = [*_noisy(Scale(trials=3)), {"load": 1, "how": "other", "samples_per_second": 99.0}]
    figure = drawn(OWN.plots[0], rows)
    assert len(figure.data) == 1
    assert list(figure.data[0].y) == [2.0, 3.0]
    assert list(figure.data[0].error_y.array) == pytest.approx([2.484, 2.484], abs=1e-3)
    bars = drawn(Plot("b", "load", "samples_per_second", ("how",), "y", "x", {}, kind="bars"), rows)
    assert bars.data[0].type == "bar"


def test_pages_say_what_the_paper_and_what_we_find() -> None:
    found = run_experiment(OWN, Scale(trials=2)).to_json()
    page, text = experiment_page(found), experiment_text(found)
    assert "What the paper found" in page
    assert "It is <code>so</code> &amp; &lt;so&gt;." in page
    assert "<b>" not in page.split("</script>")[-1]
    assert "src=" not in page.replace("src='+", "").split("<body>")[1]
    assert "| twice |" in text
    assert "reached" in text


def test_an_experiment_of_ones_own_is_run_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "numbers.py").write_text("LOADS = (1, 2)\n")
    (folder / "experiment.py").write_text(
        "from xstream.bench.experiment import Experiment, Finding, Plot\n"
        "from .numbers import LOADS\n"
        "def measure(scale):\n"
        "    for trial in range(scale.trials):\n"
        "        for load in LOADS:\n"
        "            yield {'load': load, 'trial': trial, 'samples_per_second': load * 1.0}\n"
        "def find(rows):\n"
        "    return Finding([], ('rows',), [(len(rows),)], 'Fine.')\n"
        "plot = Plot('p', 'load', 'samples_per_second', (), 'y', 'x', {})\n"
        "EXPERIMENT = Experiment('mine', 'Mine', 'Nothing.', measure, (plot,), find)\n"
    )
    out = tmp_path / "out"
    assert call(monkeypatch, "experiment", folder, "--out", out, "--trials", 2, "--json") == 0
    assert json.loads(capsys.readouterr().out)["table"]["rows"] == [["4"]]
    names = {path.name for path in (out / "mine").iterdir()}
    assert names == {"results.csv", "results.json", "page.md", "page.html"}


COUNTED = """
import pathlib
from xstream.bench.experiment import Experiment, Finding
LOG = pathlib.Path(__file__).with_name("log")
def measure(scale):
    for trial in scale.pending:
        for load in (1, 2):
            with LOG.open("a") as log:
                log.write(f"{trial}{load} ")
            if trial == 2 and load == 2 and len(LOG.read_text().split()) < 7:
                raise KeyboardInterrupt
            yield {"load": load, "trial": trial, "value": 10.0 * trial + load + 0.1}
def find(rows):
    return Finding([], ("values",), [(sorted(row["value"] for row in rows),)], "Fine.")
EXPERIMENT = Experiment("counted", "Counted", "Nothing.", measure, (), find)
"""


def test_an_interrupted_experiment_is_resumed_by_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "counted"
    folder.mkdir()
    (folder / "experiment.py").write_text(COUNTED)
    out = tmp_path / "out"
    how = ("experiment", folder, "--out", out, "--trials", 4)
    assert call(monkeypatch, *how) == 130
    said = capsys.readouterr().err
    assert "counted was not finished; --resume continues it" in said
    assert [path.name for path in (out / "counted").iterdir()] == ["journal.jsonl"]
    assert call(monkeypatch, *how, "--resume", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    wanted = [10.0 * trial + load + 0.1 for trial in range(4) for load in (1, 2)]
    assert found["table"]["rows"] == [[str(wanted)]]
    # The trials that were complete are not measured again; the one that was cut is.
    log = "01 02 11 12 21 22 21 22 31 32"
    assert (folder / "log").read_text().split() == log.split()
    assert not (out / "counted" / "journal.jsonl").exists()
    # Once it is finished there is nothing left to do, unless it is asked for at another scale.
    assert call(monkeypatch, *how, "--resume") == 0
    assert "counted: finished before" in capsys.readouterr().out
    assert (folder / "log").read_text().split() == log.split()
    assert call(monkeypatch, *how[:-1], 1, "--resume") == 0
    assert (folder / "log").read_text().split() == [*log.split(), "01", "02"]


def test_rows_of_another_scale_or_commit_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "journal.jsonl"
    Journal(path, {"commit": "a"}).add([{"trial": 0}])
    assert Journal(path, {"commit": "a"}).rows == [{"trial": 0}]
    with path.open("a") as file:
        file.write('[{"trial"')  # the machine went down here
    assert Journal(path, {"commit": "a"}).rows == [{"trial": 0}]
    assert Journal(path, {"commit": "a"}, resume=False).rows == []
    other = Journal(path, {"commit": "b"})
    assert other.rows == []
    other.add([{"trial": 5}])
    assert Journal(path, {"commit": "b"}).rows == [{"trial": 5}]


def test_results_are_stored_beside_an_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "counted"
    folder.mkdir()
    (folder / "experiment.py").write_text(COUNTED)
    out = tmp_path / "out"
    assert call(monkeypatch, "experiment", folder, "--out", out, "--trials", 1, "--store") == 0
    assert "stored: " in capsys.readouterr().out
    for name in ("results.csv", "page.md"):
        assert (folder / name).read_bytes() == (out / "counted" / name).read_bytes()
    installed = tmp_path / "xstream" / "experiments" / "fig6"
    installed.mkdir(parents=True)
    monkeypatch.setattr(results, "experiments", lambda: {"fig6": installed})
    with pytest.raises(xs.InputError, match="this is an installed package"):
        results.check_store(["fig6"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("fig99",), "there is no experiment 'fig99'"),
        (("fig6", "--clock", "sun"), "--clock must be wall or processor"),
        (("fig6", "--trials", "0"), "--trials must be from 1 to 10,000"),
        (("fig6", "--seconds", "nan"), "--seconds must be from 0.0001 to 60, not nan"),
        (("fig6", "--out", "/proc/none"), "/proc/none/fig6 cannot be written"),
        (("all", "--out", "/dev/null"), "cannot be written: /dev/null is not a directory"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(monkeypatch, "experiment", *arguments) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


def test_without_a_name_the_experiments_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "experiment") == 0
    said = capsys.readouterr().out
    assert all(name in said for name in OURS)
    assert call(monkeypatch, "experiment", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert {each["experiment"] for each in listed} == set(experiments.experiments())
    assert all(each["title"] for each in listed)


# -- what pages claim ------------------------------------------------------------------------


def _value(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return {"True": True, "False": False}.get(cell, cell)


def _stored_rows(name: str) -> list[Row]:
    """The trials that stand beside an experiment."""
    path = experiments.experiments()[name] / "results.csv"
    with path.open() as file:
        return [{k: _value(v) for k, v in row.items()} for row in csv.DictReader(file)]


@pytest.mark.parametrize("name", OURS)
def test_the_page_beside_an_experiment_says_what_its_trials_show(name: str) -> None:
    finding = find_experiment(name).find(_stored_rows(name))
    page = (experiments.experiments()[name] / "page.md").read_text()
    assert finding.text.strip() in page


def _scaled(rows: list[Row], by: float, **which: Any) -> list[Row]:
    """The same trials, some of them faster or slower than they were."""
    return [
        {**row, **{k: row[k] * by for k in row if k.endswith("samples_per_second")}}
        if all(row[k] == v for k, v in which.items())
        else row
        for row in rows
    ]


#: Which trials are changed, what the page says if they were much slower, and if much faster.
CLAIMS = {
    "fig6": (
        {"variant": "DETECTAUDIO", "memory": "refcount-lazy", "batch_kb": 4096},
        "`refcount-lazy` falls to",
        "`refcount-lazy` is flat as batches grow",
    ),
    "fig7": (
        {"variant": "DETECTAUDIO", "rate_control": "with", "scheduler": "rtc", "load": 4},
        "`rtc` in DETECTAUDIO;",
        "the order is `rtc`, then",
    ),
    "fig8": (
        {"application": "PIPELINE", "model": "SEGS"},
        "a loss \\(0.00 times\\) in PIPELINE",
        "a gain of [0-9,]{6,} times in PIPELINE",
    ),
    "heavyhitter": (
        {"scheduler": "fifo"},
        "`df` does not lose to `fifo`",
        "`df` loses to `fifo` with 1, 4",
    ),
    "table1": ({"first": True}, "segments are not ahead", "Segments are ahead"),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_follow_from_the_figures_of_the_run(name: str) -> None:
    which, slower, faster = CLAIMS[name]
    rows, find = _stored_rows(name), find_experiment(name).find
    slow_text, fast_text = (find(_scaled(rows, by, **which)).text for by in (1e-5, 1e5))
    assert re.search(slower, slow_text)
    assert not re.search(slower, fast_text)
    assert re.search(faster, fast_text)
    assert not re.search(faster, slow_text)


# -- Figure 8: one answer in every form ------------------------------------------------------


def _forms() -> Any:
    find_experiment("fig8")
    from xstream_experiment_fig8 import forms  # type: ignore[import-not-found]

    return forms


@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
@pytest.mark.parametrize("model", ["SAMPLES", "WINDOWSTRIDE", "WINDOWS", "SEGS"])
def test_pipeline_finds_the_same_leaks_in_every_form(model: str, scheduler: str) -> None:
    pressure = pressure_recording(7.0, 3, 2, seed=2)
    wanted = find_leaks(pressure)
    query = xs.Query()
    out = _forms().PIPELINE[model](query, pressure, 1).collect()
    found = query.run(scheduler)[out]
    assert len(wanted) == 2
    assert [at for at, _ in found] == [at for at, _ in wanted]
    assert np.allclose([ratio for _, ratio in found], [ratio for _, ratio in wanted])


@pytest.mark.parametrize("scheduler", ["fifo", pytest.param("df", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("variant", "model"),
    [
        ("DETECTAUDIO", "SAMPLES"),
        ("DETECTAUDIO", "WINDOWS"),
        ("DETECTAUDIO", "SEGS"),
        ("DETECTAUDIO-BLOCKS", "WINDOWS"),
        ("DETECTAUDIO-BLOCKS", "SEGS"),
    ],
)
def test_join_and_sync_cut_the_same_samples_out(variant: str, model: str, scheduler: str) -> None:
    recording = audio_recording(1.5, 2, 22.0, seed=5)
    forms = _forms()
    query = xs.Query()
    synced = forms.DETECTAUDIO[variant, "SEGS", "sync"](query, recording, 1).collect()
    wanted = query.run()[synced]
    assert wanted
    query = xs.Query()
    joined = forms.DETECTAUDIO[variant, model, "join"](query, recording, 1).collect()
    rows = query.run(scheduler)[joined]
    times = np.concatenate([np.arange(row[0].start, row[0].stop) for row in wanted])
    assert [row[0] for row in rows] == times.tolist()
    for channel in range(4):
        samples = np.concatenate([np.asarray(row[channel]) for row in wanted])
        assert np.array_equal(np.float32([row[1 + channel] for row in rows]), samples)


def test_arrow_joins_the_same_rows() -> None:
    find_experiment("fig8")
    from xstream_experiment_fig8.experiment import (  # type: ignore[import-not-found]
        library_join_rows_per_second,
    )

    assert library_join_rows_per_second(audio_recording(1.0, 1), "processor") > 0


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_program_of_the_cache_experiment_compiles(tmp_path: Path) -> None:
    find_experiment("cache")
    from xstream_experiment_cache import experiment as cache

    program = cache.build(tmp_path)
    done = subprocess.run([program, "3", "20", "64"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_cache_says_what_an_installed_package_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find_experiment("cache")
    from xstream_experiment_cache import experiment as cache  # type: ignore[import-not-found]

    monkeypatch.setattr(cache, "CORE", tmp_path)
    assert call(monkeypatch, "experiment", "cache", "--out", tmp_path) == 2
    assert "an installed package has no C sources" in capsys.readouterr().err
    monkeypatch.setenv("CC", "no-such-cc")
    assert call(monkeypatch, "experiment", "cache", "--out", tmp_path) == 2
    assert "cache needs a C compiler, and no-such-cc is not found" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_an_experiment_runs_at_a_small_size(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = ("--trials", 1, "--seconds", 0.005, "--clock", "processor", "--out", tmp_path)
    assert call(monkeypatch, "experiment", name, *how) == 0
    assert (tmp_path / name / "page.html").stat().st_size > 10_000
