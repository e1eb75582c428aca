"""The report is one page that works offline, in light and dark, and on a phone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from yabench.page import write_page
from yabench.published import read_published

import xstream as xs

pytest.importorskip("plotly")
CHROMIUM = shutil.which("chromium")


def window(number: int, recall: float = 1.0) -> dict[str, Any]:
    return {
        "start": 5000 * number, "end": 5000 * (number + 1), "precision": 1.0, "recall": recall,
        "actual": 8, "expected": 10, "delay_ms": 12.5 + number, "items": 50,
        "start_shift_ms": 0, "end_shift_ms": 0, "unexpected": [],
        "missing": ["sensor = <1>"] if recall < 1 else [],
    }  # fmt: skip


def outcome(test: str, engine: str, run: int, recall: float = 1.0) -> dict[str, Any]:
    judged = {
        "right": recall == 1.0, "finding": f"{engine} has recall {recall}", "size_ms": 5000,
        "slide_ms": 5000, "policy": "window-close",
        "windows": [window(number, recall) for number in range(4)],
    }  # fmt: skip
    sample = {"time_ms": 500, "rss_mb": 40.0, "cpu_percent": 7.0, "threads": 3}
    return {
        "test": test, "title": f"Title of {test}", "engine": engine, "run": run, "stations": 50,
        "items": 1500, "published": "", "failure": "", "samples": [sample], "date": 1.0,
        "judged": {"strict": judged},
    }  # fmt: skip


def written(file: Path) -> Path:
    """A page of two tests and three engines, one of which is wrong and one missing."""
    found = [
        outcome(test, engine, run, recall)
        for test in ("small", "big")
        for engine, recall in (("one", 1.0), ("two", 0.75))
        for run in (1, 2)
    ]
    missing = {**outcome("big", "three", 1), "judged": {}, "failure": "three is not installed"}
    write_page(file, "try", [*found, missing], None)
    return file


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return written(tmp_path / "page.html")


def test_the_page_says_what_is_wrong_and_what_is_missing(page: Path) -> None:
    text = page.read_text()
    assert "two has recall 0.75" in text
    assert "sensor = &lt;1&gt;" in text
    assert "three is not installed" in text
    assert 'src="http' not in text


def test_both_modes_are_shown_where_tests_were_judged_in_both(tmp_path: Path) -> None:
    found = []
    for engine, recall in (("one", 1.0), ("two", 0.75)):
        each = outcome("small", engine, 1, recall)
        gracious = outcome("small", engine, 1)["judged"]["strict"]
        found.append({**each, "judged": {**each["judged"], "gracious": gracious}})
    write_page(tmp_path / "page.html", "try", found, None)
    text = (tmp_path / "page.html").read_text()
    rows = re.findall(r"<tr><td>(two[^<]*)</td>(.*?)</tr>", text.replace("\n", ""))
    assert [(name, "0.750" in cells) for name, cells in rows] == [
        ("two", True), ("two, gracious", False)
    ]  # fmt: skip
    assert text.count('"name":"two, gracious"') == 1  # of recall alone: precision is the same
    assert '"name":"one, gracious"' not in text


def test_findings_of_many_runs_are_folded(tmp_path: Path) -> None:
    found = [outcome("small", "one", run, 1 - run / 100) for run in range(1, 11)]
    file = tmp_path / "page.html"
    write_page(file, "try", [{**each, "stations": 1} for each in found], None)
    text = file.read_text()
    assert text.count('<p class="finding">') == 10
    shown = text.split("<summary>7 more findings of other runs</summary>")[0]
    assert shown.count('<p class="finding">') == 3
    assert "1 station, 1,500 items" in text


CLICKS = """<script>addEventListener('load',function(){setTimeout(function(){
var told=[];document.querySelectorAll('.tabs button').forEach(function(b){b.click();
var shown=[].filter.call(document.querySelectorAll('section.test'),function(s){return !s.hidden});
var d=document.documentElement;var details=shown[0].querySelector('details');
if(details)details.querySelector('summary').click();
told.push(b.dataset.test+':'+shown.length+':'+shown[0].dataset.test+':'
+(details?details.open:'')+':'+(d.scrollWidth>d.clientWidth)
+':'+shown[0].querySelectorAll('.plot .main-svg').length)});
var p=document.createElement('p');p.id='told';p.textContent=told.join(' ');
document.body.appendChild(p)},1500)})</script></body>"""


@pytest.mark.chromium
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("options", [["--window-size=1280,900"],
                                     ["--window-size=420,844", "--force-dark-mode"]])  # fmt: skip
def test_a_browser_clicks_through_the_tests(page: Path, tmp_path: Path, options: list[str]) -> None:
    assert CHROMIUM is not None
    page.write_text(page.read_text().replace("</body>", CLICKS))
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", *options,
         "--virtual-time-budget=15000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    told = done.stdout.split('id="told">')[1].split("<")[0].split()
    for text, name in zip(told, ("small", "big"), strict=True):
        chosen, count, shown, opened, wide, plots = text.split(":")
        assert (chosen, count, shown, opened, wide) == (name, "1", name, "true", "false")
        assert int(plots) >= 10


@pytest.mark.yabench_data
def test_published_results_are_read(yabench_data: Path) -> None:
    found = read_published(yabench_data / "published-results.tar.xz")
    small = {each.engine: each for each in found["Experiment_1/small"]}
    assert small["CQELS"].precision == small["CQELS"].recall == 1.0
    assert small["C-SPARQL"].recall == pytest.approx(0.982, abs=0.001)
    last = {each.engine: each for each in found["Experiment_4"]}
    assert (last["C-SPARQL"].precision, last["C-SPARQL"].recall) == (1.0, pytest.approx(0.6))
    assert last["C-SPARQL, gracious"].recall == 1.0


def test_published_results_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.tar.xz"
    file.write_text("nothing")
    with pytest.raises(xs.InputError, match=r"x\.tar\.xz"):
        read_published(file)
