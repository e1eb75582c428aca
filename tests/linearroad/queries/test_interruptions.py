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

import pytest
from linearroad.queries.history import History
from linearroad.queries.run import RunOptions, run

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


@pytest.mark.parametrize("more", [(), ("--format", "parquet")], ids=["csv", "parquet"])
def test_ctrl_c_leaves_every_finished_second_whole(
    traffic: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    process = subprocess.Popen(
        command(traffic, tmp_path / "cut", "--speed", "60", *more),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    timeline = tmp_path / "cut" / "timeline.csv"
    while process.poll() is None and not (
        timeline.exists() and timeline.read_text().count("\n") > 1
    ):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    printed = process.communicate()[0]
    assert process.returncode == 128 + signal.SIGINT, printed
    assert "interrupted: answers are complete up to stream second" in printed
    summary = json.loads((tmp_path / "cut" / "summary.json").read_text())
    assert summary["interrupted"] is True
    assert 0 < summary["stream_seconds"] < SECONDS - 1
    whole = run(traffic, tmp_path / "whole", History(), RunOptions())
    assert not whole.interrupted
    if more:
        import pyarrow.parquet as pq

        table = pq.read_table(tmp_path / "cut" / "output.parquet", columns=["time", "vid"])
        found = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
    else:
        found = answered(tmp_path / "cut" / "output.csv")
    complete = answered(tmp_path / "whole" / "output.csv")
    assert found == [row for row in complete if row[0] <= summary["stream_seconds"]]


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
