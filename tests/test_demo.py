"""The demonstrations run where there is no terminal, and show what they should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
