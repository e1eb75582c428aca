"""The five-minute part of `make chaos`, and what it says when a protection is removed."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import IO

import pytest
from xstream._native import ffi

from tests.chaos import kills
from tests.chaos.__main__ import generated
from tests.chaos.damage import damaged_files
from tests.chaos.faults import fault_every_step
from tests.chaos.kills import kill_runs
from tests.chaos.subjects import linear_road_subjects, signal_subject
from xstream.io.output import OutputFile
from xstream.recovery import format as checkpoint_format

pytestmark = pytest.mark.slow


def test_a_process_hangs_if_it_sleeps_or_works_for_ever_but_not_if_it_is_suspended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kills, "PATIENCE_S", 0.1)
    for work in (lambda: time.sleep(60), lambda: sum(iter(int, 1))):
        with pytest.raises(AssertionError, match="a run hangs"):
            kills.in_child(work, None)
    suspended = subprocess.Popen(["sleep", "60"])
    suspended.send_signal(signal.SIGSTOP)
    patience = kills.Patience(suspended.pid)
    for _ in range(30):
        time.sleep(0.01)
        over = patience.is_over()
    suspended.kill()
    suspended.wait()
    assert not over


def test_killed_signal_queries_lose_and_double_nothing(tmp_path: Path) -> None:
    tally = kill_runs(signal_subject(), tmp_path, 40, 18, time.monotonic() + 60)
    assert tally.kills >= 10
    assert tally.wrong == []


def test_killed_runs_of_linear_road_lose_and_double_nothing(tmp_path: Path) -> None:
    traffic = generated(tmp_path / "traffic")
    for subject in linear_road_subjects(traffic, tmp_path):
        tally = kill_runs(subject, tmp_path / subject.name, 12, 18, time.monotonic() + 30)
        assert tally.kills >= 3
        assert tally.wrong == []


def test_every_fault_of_the_disk_is_survived(tmp_path: Path) -> None:
    sentence, failed = fault_every_step(tmp_path / "faults", time.monotonic() + 100, steps=18)
    assert not failed, sentence


def test_all_damage_is_noticed(tmp_path: Path) -> None:
    sentence, unnoticed = damaged_files(tmp_path / "damage", 3000, 18)
    assert not unnoticed, sentence


# -- each protection removed -----------------------------------------------------------------


def test_without_fsync_a_power_cut_loses_the_checkpoints(tmp_path: Path) -> None:
    sentence, failed = fault_every_step(
        tmp_path / "faults", time.monotonic() + 60, steps=8, without_fsync=True
    )
    assert failed
    assert "power cut at step" in sentence


def test_without_the_checksum_flipped_bits_go_unnoticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Blind:
        def xs_crc32c(self, before: int, contents: object, count: int) -> int:
            return int.from_bytes(bytes(ffi.buffer(contents))[count:], "little")

    monkeypatch.setattr(checkpoint_format, "lib", Blind())
    sentence, unnoticed = damaged_files(tmp_path / "damage", 500, 18)
    assert unnoticed, sentence


def test_without_cutting_back_outputs_have_rows_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claim(self: OutputFile, file: IO[bytes], length: int) -> None:
        file.seek(0, 2)

    monkeypatch.setattr(OutputFile, "_claim", claim)
    tally = kill_runs(signal_subject(), tmp_path, 30, 18, time.monotonic() + 60)
    assert tally.wrong
