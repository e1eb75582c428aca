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

@xs.kernel
def summed(window):
    return window.sum()

q = xs.Query()
source = q.source(xs.io.array(np.arange(8.0), rate_hz=1.0, window=4))
out = source.map({kernel}).collect()
print(q.run()[out], "/", *sorted({"rocket_fft", "scipy.linalg"} & set(sys.modules)))
"""


def printed(path: Path, cache: Path) -> tuple[str, str]:
    ran = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=True,
        env={"XSTREAM_CACHE_DIR": str(cache), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    result, _, imported = ran.stdout.strip().partition(" /")
    return result, imported.strip()


@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [("simple", ""), ("summed", ""), ("transformed", "rocket_fft scipy.linalg")],
)
def test_cached_code_is_loaded_with_what_it_refers_to(
    kernel: str, wanted: str, tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("{kernel}", kernel))
    compiled, _ = printed(path, tmp_path / "cache")
    loaded, imported = printed(path, tmp_path / "cache")
    assert loaded == compiled
    assert imported == wanted
