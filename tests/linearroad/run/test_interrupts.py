"""A run that is stopped by Ctrl-C or a full disk leaves complete seconds or lines."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import MANIFEST_VERSION
from linearroad.operators.answers import batch
from linearroad.run.job import RunOptions, run
from linearroad.schema import column
from linearroad.tables.history import History
from linearroad.validation.answers import read_run

import xstream as xs
from xstream.errors import InputError

SECONDS = 6000


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred minutes with four reports per second; every vehicle stays on the road."""
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


def started(command: list[str], out: Path, growing: str = "timeline.csv") -> subprocess.Popen[str]:
    """Start a run that accepts SIGINT, and wait until it has made progress."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    path = out / "timeline.csv"
    while process.poll() is None and not (path.exists() and path.read_text().count("\n") > 1):
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


@pytest.mark.parametrize("at_least", [1, 7, 1000])
def test_batches_of_answers_end_with_whole_seconds(at_least: int) -> None:
    """Two tables per second; the written answers are complete up to the second that is named."""
    fields = {
        "time": int, "kind": column("int8"), "who": column("int32"), "value": column("int32"),
        "amount": column("int64"),
    }  # fmt: skip
    schema = xs.schema({name: _as_field(out) for name, out in fields.items()})
    dtypes = (np.int8, np.int32, np.int32, np.int64)
    tuples = [
        (time, *(xs.SigSeg(np.full(3, time % 5, dtype)) for dtype in dtypes))
        for time in (0, 0, 1, 1, 5, 9, 9)  # of second 5 a table is missing
    ]
    query = xs.Query()
    out = query.source(xs.io.iterable(tuples, out=schema)).iterate(batch, 2, at_least).collect()
    found = [(upto, np.asarray(times).tolist()) for upto, _, times, *_ in query.run()[out]]
    everything = [0] * 6 + [1] * 6 + [5] * 3 + [9] * 6
    assert [time for _, times in found for time in times] == everything
    for upto, times in found:
        assert times[-1] == upto
    cuts = np.cumsum([len(times) for _, times in found]).tolist()
    assert set(cuts) <= {6, 12, 15, 21}
    assert all(len(times) >= at_least for _, times in found[:-1])


def _as_field(out: Any) -> Any:
    return xs.Segment(out.dtype) if isinstance(out, xs.Out) else out


def answered(path: Path) -> list[tuple[int, int]]:
    """Time and vehicle of every notification."""
    fields = (line.split(",") for line in path.read_text().splitlines())
    return sorted((int(row[2]), int(row[1])) for row in fields)


def test_a_killed_run_is_known_to_be_incomplete(traffic: Path, tmp_path: Path) -> None:
    process = started(command(traffic, tmp_path, "--speed", "60"), tmp_path)
    process.kill()
    process.communicate()
    assert (tmp_path / "output.csv").exists()
    with pytest.raises(InputError, match="answers are incomplete"):
        read_run(tmp_path)


WRITER = """
import sys
from pathlib import Path
import numpy as np
from linearroad.output.writers import ANSWER_DTYPES, CsvAnswers
writer = CsvAnswers(Path(sys.argv[1]))
columns = [np.full(50_000, 7 if dtype != "int8" else 0, dtype) for dtype in ANSWER_DTYPES]
print("ready", flush=True)
for _ in range(50):
    writer.write(*columns)
print("done", flush=True)
sys.stdin.read()
"""


def test_every_line_that_ends_is_an_answer_wherever_a_run_is_killed(tmp_path: Path) -> None:
    """The kernel may cut off a write; then the last line has no end."""
    path, chance = tmp_path / "output.csv", random.Random(7)
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0.0, 0.2))
            process.kill()
        lines = read_lines(path)
        whole = lines if not lines or lines[-1].endswith("\n") else lines[:-1]
        assert set(whole) <= {"0,7,7,0.007,7,7\n"}


def read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


def test_a_full_disk_gets_one_sentence_and_leaves_whole_lines(
    traffic: Path, tmp_path: Path
) -> None:
    room = 50_000  # maximum file size in bytes

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
