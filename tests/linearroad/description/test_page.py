"""The page of `describe`, rendered by a browser in the sizes of a laptop and a phone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from linearroad.description._kernels import CELL_FT, CELL_S, ROAD_FT
from linearroad.description.figures import Figures, measure_expressway
from linearroad.description.page import write_page
from linearroad.generation.manifest import read_manifest

from tests.report.figures import check_frame, drawn

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


def late_figures(seconds: int = 1200) -> Figures:
    """Traffic that begins at minute 150: free roads, and a queue behind mile 40 eastwards."""
    cells = np.full((2, seconds // CELL_S + 1, ROAD_FT // CELL_FT), 60.0, np.float32)
    cells[0, :, 140:160] = 10.0
    return Figures(
        xway=0, seconds=seconds, from_minute=150, reports=10, vehicles=3, notifications=2,
        tolls_above_zero=1, alerts=0, queries={"balance": 1, "expenditure": 2, "travel time": 3},
        first_minute_rate=1.0, last_minute_rate=2.0, on_road_at_end=3,
        lane_speeds_mph=[40.0, 50.0, 55.0, 60.0, 40.0], busiest_segment_vehicles=5,
        rate=np.ones(seconds, np.int64), cell_speed=cells,
    )  # fmt: skip


def accident(mile: float, stopped: int, cleared: int, direction: int = 0) -> dict[str, int]:
    return {"dir": direction, "lane": 1, "pos": int(5280 * mile), "stopped": stopped,
            "detected": stopped + 120, "cleared": cleared}  # fmt: skip


def test_a_late_stream_shows_what_happens_in_it_in_both_directions(tmp_path: Path) -> None:
    figures, page = late_figures(), tmp_path / "page.html"
    over = [accident(70.0, -8000, -7000), accident(71.0, 1300, 2000)]
    standing = [accident(40.0, -300, 900), accident(80.0, 600, -9001), accident(20.0, 30, 60, 1)]
    write_page(page, figures, [*over, *standing])
    text = page.read_text()
    check_frame(text)
    assert "minute 0 is minute 150 of the simulation" in text
    rate, east, west, queue = drawn(text)
    assert rate["data"][0]["x"][-1] < 20
    lines = [[trace["x"] for trace in each["data"][1:]] for each in (east, west, queue)]
    assert lines == [[[0, 15], [10, 20]], [[0.5, 1]], [[0, 15], [10, 20]]]
    assert "The queue behind the accident at mile 40.0, direction 0, lane 1" in text
    for picture in (east, west, queue):
        low, high = picture["layout"]["xaxis"]["range"]
        assert 0 <= low < high <= 20


def test_without_a_queue_there_is_no_picture_of_one(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_page(page, late_figures(), [accident(70.0, 100, 1000), accident(40.0, -900, -100)])
    assert len(drawn(page.read_text())) == 3
    assert "The queue behind" not in page.read_text()


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
