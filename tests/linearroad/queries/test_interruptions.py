"""A run that is stopped, by Ctrl-C or by a full disk, leaves whole seconds or whole lines."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from linearroad.layout import Layout
from linearroad.manifest import MANIFEST_VERSION
from linearroad.queries.answering import AnswerSink
from linearroad.queries.feeding import Clock
from linearroad.queries.history import History
from linearroad.queries.run import RunOptions, run
from linearroad.queries.writing import NoAnswers

import xstream as xs

SECONDS = 6000


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four vehicles a second for a hundred minutes, each of them for as long."""
    path = tmp_path_factory.mktemp("traffic") / "flat.csv"
    with path.open("w") as file:
        for t in range(SECONDS):
            for lane in range(4):
                vid, pos = 4 * (t % 30) + lane, (80 * t) % 528_000
                file.write(f"0,{t},{vid},55,0,{lane},0,{pos // 5280},{pos}" + ",-1" * 6 + "\n")
    return path


def command(traffic: Path, out: Path, *more: str) -> list[str]:
    code = "import sys; from xstream.cli import main; sys.exit(main())"
    return [
        *(sys.executable, "-c", code, "linearroad", "run"),
        *("--input", str(traffic), "--out", str(out)),
        *more,
    ]


@pytest.fixture(scope="module")
def directory(traffic: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows and those of a second, sparser expressway, as a generated directory."""
    place = tmp_path_factory.mktemp("directory")
    layout = Layout(place)
    layout.traffic(0, "csv").parent.mkdir()
    layout.traffic(0, "csv").write_text(traffic.read_text())
    with layout.traffic(1, "csv").open("w") as file:
        for t in range(0, SECONDS, 3):
            file.write(f"0,{t},{1000 + t % 30},55,1,1,0,5,{5 * 5280}" + ",-1" * 6 + "\n")
    manifest = {
        "version": MANIFEST_VERSION,
        "complete": True,
        "parameters": {"format": "csv", "expressways": 2, "minutes": SECONDS // 60},
    }
    layout.manifest.write_text(json.dumps(manifest))
    return place


def started(command: list[str], out: Path) -> subprocess.Popen[str]:
    """A run that has begun to answer; one that can be interrupted wherever the tests run."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    timeline = out / "timeline.csv"
    while process.poll() is None and not (
        timeline.exists() and timeline.read_text().count("\n") > 1
    ):
        time.sleep(0.05)
    return process


CASES = {
    "csv": ("flat", (signal.SIGINT,), ()),
    "parquet": ("flat", (signal.SIGINT,), ("--format", "parquet")),
    "files": ("directory", (signal.SIGTERM,), ()),
    "twice": ("directory", (signal.SIGINT, signal.SIGINT), ("--workers", "2")),
}


@pytest.mark.parametrize(("source", "signals", "more"), CASES.values(), ids=CASES)
def test_an_interrupt_leaves_every_second_whole_that_it_names(
    source: str, signals: tuple[int, ...], more: tuple[str, ...], tmp_path: Path,
    traffic: Path, directory: Path,
) -> None:  # fmt: skip
    path = traffic if source == "flat" else directory
    out = tmp_path / "cut"
    process = started(command(path, out, "--speed", "60", *more), out)
    for number in signals:
        process.send_signal(number)
    printed = process.communicate()[0]
    assert process.returncode == 128 + signals[0], printed
    assert "Traceback" not in printed
    summary = json.loads((out / "summary.json").read_text())
    assert summary["interrupted"] is True
    named = f"interrupted: answers are complete up to stream second {summary['stream_seconds']:,}"
    assert named in printed.splitlines()[-1]
    assert 0 < summary["stream_seconds"] < SECONDS - 1
    whole = run(path, tmp_path / "whole", History(), RunOptions())
    assert not whole.interrupted
    if "parquet" in more:
        import pyarrow.parquet as pq

        table = pq.read_table(out / "output.parquet", columns=["time", "vid"])
        found = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
    else:
        found = answered(out / "output.csv")
    complete = answered(tmp_path / "whole" / "output.csv")
    assert found == [row for row in complete if row[0] <= summary["stream_seconds"]]


@pytest.mark.parametrize(("speed", "whole_s"), [(None, 8), (60.0, 9)], ids=["max", "paced"])
def test_an_engine_that_was_cut_short_names_the_last_second_that_is_whole(
    speed: float | None, whole_s: int, tmp_path: Path
) -> None:
    """At full speed a batch of answers may end within a second; paced, it is of whole seconds."""
    taker = AnswerSink(NoAnswers(tmp_path), Clock(speed))
    taker.end_run(cut=True)
    assert taker.result.interruption() == "no stream second has been answered completely"
    kinds, times = np.zeros(29, np.int8), np.repeat(np.arange(10), 3)[:-1].astype(np.int32)
    nothing = np.zeros(29, np.int32)
    columns = kinds, times, 1000 * times.astype(np.int64), nothing, nothing, nothing
    taker.take(*(xs.SigSeg(column) for column in columns))
    assert taker.result.stream_seconds == 9
    taker.end_run(cut=True)
    assert taker.result.interruption() == f"answers are complete up to stream second {whole_s}"


def answered(path: Path) -> list[tuple[int, int]]:
    """Time and vehicle of every notification."""
    fields = (line.split(",") for line in path.read_text().splitlines())
    return sorted((int(row[2]), int(row[1])) for row in fields)


def test_a_full_disk_gets_one_sentence_and_leaves_whole_lines(
    traffic: Path, tmp_path: Path
) -> None:
    room = 50_000  # bytes that a file may have

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    done = subprocess.run(
        command(traffic, tmp_path / "out", "--speed", "1000"),
        capture_output=True, text=True, preexec_fn=limit, check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "output.csv cannot be written: File too large" in last
    assert "Traceback" not in done.stderr
    text = (tmp_path / "out" / "output.csv").read_bytes()
    assert 0 < len(text) <= room
    assert text.endswith(b"\n")
    assert {line.count(b",") for line in text.splitlines()} == {5}


def test_a_full_disk_gets_one_sentence_when_answers_are_written_in_the_background(
    traffic: Path, tmp_path: Path
) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    done = subprocess.run(
        command(traffic, tmp_path / "out", "--speed", "1000", "--format", "parquet"),
        capture_output=True, text=True, preexec_fn=limit, check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "output.parquet cannot be written" in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr
