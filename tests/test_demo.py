"""The demonstrations run where there is no terminal, and show what they should."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_tone_is_found_without_a_terminal() -> None:
    shown = subprocess.run(
        [sys.executable, ROOT / "examples" / "tone.py"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert "tone found    8.9-14.1 s, 30.8-33.6 s, 50.0-58.1 s" in shown.stdout
    for memory in ("copy-always", "refcount-copy", "refcount-realloc", "refcount-lazy"):
        assert memory in shown.stdout
    assert "\x1b[" not in shown.stdout


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_main_job_is_right_in_time_and_has_something_to_show(tmp_path: Path) -> None:
    """What `make demo` runs, as it is: tolls above zero, alerts, and all kinds of queries."""
    done = subprocess.run(
        [Path(sys.executable).with_name("xstream"), "linearroad", "demo", "--out", tmp_path],
        capture_output=True, text=True, timeout=800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "\x1b[" not in done.stdout
    told = json.loads((tmp_path / "answers" / "validation.json").read_text())
    assert told["passed"] is told["right"] is told["in_time"] is True
    assert all(each["right"] > 0 for each in told["types"].values())
    lines = (tmp_path / "answers" / "output.csv").read_text().splitlines()
    assert any(line.startswith("0,") and not line.endswith(",0") for line in lines)
    assert f"report: {tmp_path / 'answers' / 'report.html'}" in done.stdout
