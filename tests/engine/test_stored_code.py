"""Cached machine code is loaded without numba's library, and with it where the code needs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import numpy as np
import xstream as xs

@xs.kernel
def simple(window):
    return window[0] * 2.0

@xs.kernel
def transformed(window):
    return np.abs(np.fft.fft(window))[1]

q = xs.Query()
source = q.source(xs.io.array(np.arange(8.0), rate_hz=1.0, window=4))
out = source.map({kernel}).collect()
print(q.run()[out], "rocket_fft" in sys.modules)
"""


def printed(path: Path, cache: Path) -> tuple[str, str]:
    ran = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=True,
        env={"XSTREAM_CACHE_DIR": str(cache), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    result, _, extended = ran.stdout.strip().rpartition(" ")
    return result, extended


@pytest.mark.parametrize(("kernel", "alone"), [("simple", True), ("transformed", False)])
def test_cached_code_is_loaded_with_what_it_refers_to(
    kernel: str, alone: bool, tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("{kernel}", kernel))
    compiled, _ = printed(path, tmp_path / "cache")
    loaded, extended = printed(path, tmp_path / "cache")
    assert loaded == compiled
    assert extended == str(not alone)
