"""A run that is interrupted and resumed until its end gives the answers of one without a break."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sized
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from linearroad import input as inputs
from linearroad.output.digests import read_digests
from linearroad.run.job import RunOptions, RunResult, run
from linearroad.tables.history import History

from xstream.errors import InputError

BASE = 2


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows or answers at a time, and a look after each of them."""
    monkeypatch.setattr("linearroad.output.sink.BATCH", 10)
    monkeypatch.setattr(inputs, "ROWS", 40)
    monkeypatch.setattr(inputs, "BYTES", 1500)
    monkeypatch.setattr("xstream.run.LOOK_UP_NS", 1)
    monkeypatch.setattr("xstream.recovery.checkpoints.LAST_S", 60.0)  # on a machine that is busy


class Interrupt:
    """Ctrl-C with the n-th look at the progress."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.outside = signal.getsignal(signal.SIGINT)  # Python's, or Spark's

    def __call__(self, _: RunResult) -> None:
        self.looks -= 1
        running = signal.getsignal(signal.SIGINT) is not self.outside
        if self.looks == 0 and running:  # the last look comes after the run
            signal.raise_signal(signal.SIGINT)


def in_pieces(directory: Path, out: Path, history: History, options: dict[str, Any]) -> RunResult:
    """Interrupt a run again and again, a little later every time, until it comes to its end."""
    result, looks = None, 3
    while result is None or result.interrupted:
        asked = RunOptions(checkpoint_s=1e-4, resume=result is not None, **options)
        result = run(directory, out, history, asked, Interrupt(looks))
        looks += 9
    assert result.recoveries > 1
    return result


@pytest.mark.parametrize("rules", ["paper", "brandeis", "walmart"])
@pytest.mark.parametrize("threads", [1, 2])
def test_written_answers(
    directory: Path, history: History, tmp_path: Path, rules: str, threads: int
) -> None:
    options: dict[str, Any] = {"rules": rules, "threads": threads}
    whole = run(directory, tmp_path / "whole", history, RunOptions(rules=rules))
    result = in_pieces(directory, tmp_path / "pieces", history, options)
    for name in ("output.csv", "rejects.csv"):
        found = (tmp_path / "pieces" / name).read_bytes()
        wanted = (tmp_path / "whole" / name).read_bytes()
        assert sorted(found.splitlines()) == sorted(wanted.splitlines())
        assert found == wanted or name == "rejects.csv"
    for name in ("rows", "reports", "requests", "answers", "rejects", "implausible_speeds"):
        assert getattr(result, name) == getattr(whole, name)


@pytest.mark.parametrize("rules", ["paper", "thesis"])
def test_answers_in_parquet(directory: Path, history: History, tmp_path: Path, rules: str) -> None:
    options: dict[str, Any] = {"rules": rules, "form": "parquet"}
    whole = run(directory, tmp_path / "whole", history, RunOptions(**options))
    result = in_pieces(directory, tmp_path / "pieces", history, options)
    found, wanted = (
        pq.ParquetFile(tmp_path / name / "output.parquet", page_checksum_verification=True)
        for name in ("pieces", "whole")
    )
    assert (tmp_path / "pieces/output.parquet").read_bytes().count(b"PAR1") > 3  # has parts
    assert found.read().equals(wanted.read())
    assert result.answers == whole.answers


@pytest.mark.parametrize("threads", [1, 2])
def test_digests_of_copies(directory: Path, history: History, tmp_path: Path, threads: int) -> None:
    options: dict[str, Any] = {"answers": "digest", "expressways": 2 * BASE, "threads": threads}
    whole = run(directory, tmp_path / "whole", history, RunOptions(**options))
    result = in_pieces(directory, tmp_path / "pieces", history, options)
    assert whole.digests is not None
    assert result.digests is not None
    assert (whole.digests == result.digests).all()
    assert not result.copies_differ
    assert (result.answers, result.rows) == (whole.answers, whole.rows)
    shape = whole.digests.shape[:2]
    assert (read_digests(tmp_path / "pieces" / "digests.parquet", *shape) == whole.digests).all()


def test_answers_that_recovery_makes_late_are_counted_as_late(
    directory: Path, history: History, tmp_path: Path
) -> None:
    speed = 300.0
    asked = RunOptions(speed=speed, minutes=2, checkpoint_s=1e-3)
    assert run(directory, tmp_path, history, asked, Interrupt(40)).interrupted
    time.sleep(0.3)  # 90 seconds of the stream
    resumed = RunOptions(speed=speed, minutes=2, checkpoint_s=1e-3, resume=True)
    result = run(directory, tmp_path, history, resumed)
    assert (result.interrupted, result.recoveries) == (False, 1)
    assert result.worst_lag_s > 60
    assert result.first_late is not None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"resume": True}, "--resume requires --checkpoint-s"),
        ({"checkpoint_s": 0.0}, "positive number of seconds"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    directory: Path, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        run(directory, tmp_path, History(), RunOptions(**options))


def test_a_checkpoint_of_other_options_is_refused(directory: Path, tmp_path: Path) -> None:
    first = RunOptions(checkpoint_s=1e-3, minutes=30)
    assert run(directory, tmp_path, History(), first, Interrupt(5)).interrupted
    other = RunOptions(checkpoint_s=1e-3, minutes=20, resume=True)
    with pytest.raises(InputError, match="with --minutes 30, and this is one with --minutes 20"):
        run(directory, tmp_path, History(), other)
    with pytest.raises(InputError, match=r"cannot be used: it is .* is one without --minutes$"):
        run(directory, tmp_path, History(), replace(other, minutes=None))
    assert (tmp_path / "output.csv").exists(), "a refused run leaves the output as it was"


def test_sigterm_ends_at_a_checkpoint(directory: Path, tmp_path: Path) -> None:
    code = "import sys; from xstream.cli import main; sys.exit(main())"
    out = tmp_path / "out"
    command = [
        sys.executable, "-c", code, "linearroad", "run", "--input", str(directory), "--out",
        str(out), "--speed", "20", "--checkpoint-s", "0.2",
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not list((out / "checkpoints").glob("checkpoint-*")) and time.monotonic() < until:
        time.sleep(0.05)
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert time.monotonic() - begin < 10  # 2 s on a machine that does nothing else
    assert "--resume continues from there" in said
    assert json.loads((out / "summary.json").read_text())["interrupted"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux")
def test_a_full_disk_is_one_sentence(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = RunOptions(checkpoint_s=1e-3)
    assert run(directory, tmp_path, History(), first, Interrupt(4)).interrupted
    whole = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())

    from xstream.recovery import generations

    def full(self: generations.Generations, number: int) -> generations.Pending:
        part = self.folder / f".checkpoint-{number:06d}.0.part"
        return generations.Pending(number, part, os.open("/dev/full", os.O_WRONLY))

    again = RunOptions(checkpoint_s=1e-4, resume=True)
    with monkeypatch.context() as patch:
        patch.setattr(generations.Generations, "begin", full)
        with pytest.raises(InputError, match="No space left on device; the one before"):
            run(directory, tmp_path, History(), again)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == whole
    assert not run(directory, tmp_path, History(), again).interrupted


def test_a_run_goes_on_behind_the_one_before_a_damaged_checkpoint(
    directory: Path, tmp_path: Path
) -> None:
    """Rows are read ahead behind the latest one, and again behind the one that is used."""
    flat, out, whole = tmp_path / "rows.csv", tmp_path / "out", tmp_path / "whole"
    rows = [chunk.columns for chunk in inputs.open_input(directory)[0].chunks()]
    lines = [",".join(map(str, row)) for each in rows for row in zip(*each, strict=True)]
    for at in range(len(lines) - 1, 0, -7):
        lines.insert(at, "no row at all")
    flat.write_text("\n".join(lines) + "\n")
    options = RunOptions(checkpoint_s=1e-4)
    assert run(flat, out, History(), options, Interrupt(20)).interrupted
    latest = max((out / "checkpoints").iterdir())
    latest.write_bytes(latest.read_bytes()[:-1])
    result = run(flat, out, History(), replace(options, resume=True))
    assert result.recoveries == 1
    assert len(result.warnings) == 1
    assert "is damaged" in result.warnings[0]
    run(flat, whole, History(), RunOptions())
    for name in ("output.csv", "rejects.csv"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize("checkpoint_s", [None, 1e-3])
def test_a_full_disk_below_the_answers_is_one_sentence(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint_s: float | None
) -> None:
    options = RunOptions(checkpoint_s=checkpoint_s, resume=checkpoint_s is not None)
    if options.resume:
        assert run(directory, tmp_path, History(), options, Interrupt(5)).interrupted

    def full(self: object, *columns: Sized) -> None:
        if len(columns[0]):
            raise InputError("output.csv cannot be written: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("linearroad.output.writers.CsvAnswers.write", full)
        with pytest.raises(InputError) as caught:
            run(directory, tmp_path, History(), options)
    said = "output: output.csv cannot be written: No space left on device"
    assert str(caught.value) == said
    assert not run(directory, tmp_path, History(), options).interrupted


def test_a_damaged_history_ends_a_resumed_run_before_its_answers(
    directory: Path, history: History, tmp_path: Path
) -> None:
    def damaged() -> None:
        raise InputError("the history is damaged")

    wrong, out = replace(history, ready=damaged), tmp_path / "out"
    with pytest.raises(InputError, match=r"^the history is damaged$"):
        run(directory, out, wrong, RunOptions(checkpoint_s=1e-4))
    assert not out.exists()
    assert run(directory, out, history, RunOptions(checkpoint_s=1e-4), Interrupt(9)).interrupted
    with pytest.raises(InputError, match=r"the history is damaged$"):
        run(directory, out, wrong, RunOptions(checkpoint_s=1e-4, resume=True))
    run(directory, out, history, RunOptions(checkpoint_s=1e-4, resume=True))
    run(directory, tmp_path / "whole", history, RunOptions())
    assert (out / "output.csv").read_bytes() == (tmp_path / "whole" / "output.csv").read_bytes()
