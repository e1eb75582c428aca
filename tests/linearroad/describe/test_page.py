"""The page of `describe`, opened as a person would: in a browser, on a laptop and on a phone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from linearroad.describe.measure import measure_expressway
from linearroad.describe.report import write_page
from linearroad.manifest import read_manifest

CHROMIUM = shutil.which("chromium")


def rendered(page: Path, profile: Path, size: str) -> str:
    """The document after its scripts have run."""
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={profile}", f"--window-size={size}", "--virtual-time-budget=10000",
        "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


@pytest.mark.chromium
@pytest.mark.spark
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("size", ["1366,768", "390,844"])
def test_the_page_draws_its_pictures(generated: Path, tmp_path: Path, size: str) -> None:
    manifest = read_manifest(generated)
    page = tmp_path / "page.html"
    write_page(
        page, measure_expressway(generated, manifest, 0), manifest["simulated"][0]["accidents"]
    )
    document = rendered(page, tmp_path / "profile", size)
    assert document.count('class="main-svg"') >= 2
    assert "position reports" in document
