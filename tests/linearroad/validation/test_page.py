"""The page of `validate --report`, rendered by a browser in a large and a small window."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from linearroad.validation.job import Shown
from linearroad.validation.page import write_report
from linearroad.validation.verdict import Verdict

from tests.linearroad.description.test_page import CHROMIUM, rendered
from tests.report.figures import MACHINE, check_frame, drawn

TIMELINE = """wall_s,stream_s,lag_s,rows,answers,memory_bytes,cpu_s,surprise
1.0,20,0.01,100,50,200000000,0.9,7
2.0,40,0.02,300,150,210000000,1.7,7
3.0,60,0.01,
"""


def example() -> Shown:
    """A verdict with one missing alert."""
    verdict = Verdict("paper", 20.0, True, 1000, 3, 179, "")
    for kind, each in enumerate(verdict.types):
        each.expected, each.answered, each.right = 300, 299, 298
        each.delay_s = {"p50": 0.1, "p90": 0.2, "p99": 0.3, "p999": 0.4, "worst": 0.5}
        verdict.histogram += [{"type": kind, "bin": at, "answers": 10 + at} for at in range(20)]
        for minute in (1, 2, 3):
            verdict.minutes.append(
                {"type": kind, "minute": minute, "expected": 100, "answered": 99, "right": 98,
                 "precision": 98 / 99, "recall": 0.98, "delay_s": each.delay_s}
            )  # fmt: skip
    verdict.types[1].differences["missing"] = 1
    verdict.rows_by_second = dict.fromkeys(range(180), 5)
    verdict.differences_file = "differences.parquet"
    sentence = "vehicle 4711 crossed into segment 36 at 1020 s: <none> was sent"
    return Shown(verdict, [{"kind": "missing", "minute": 18, "sentence": sentence}])


@pytest.fixture
def shown() -> Shown:
    return example()


def test_the_page_needs_nothing_else_and_shows_the_resources(shown: Shown, tmp_path: Path) -> None:
    (tmp_path / "timeline.csv").write_text(TIMELINE)
    page = write_report(tmp_path, shown).read_text()
    assert "<script src=" not in page
    assert "<link" not in page
    assert "Memory of the run" in page
    assert "&lt;none&gt;" in page  # text of other systems is escaped
    (tmp_path / "timeline.csv").unlink()
    assert "Memory of the run" not in write_report(tmp_path, shown).read_text()


def test_what_is_wrong_comes_first(shown: Shown, tmp_path: Path) -> None:
    page = write_report(tmp_path, shown).read_text()
    order = [
        "WRONG: 1 missing",
        "<h2>Differences",
        "vehicle 4711",
        "Answers by type",
        "Precision",
    ]
    places = [page.index(words, page.index("<body>")) for words in order]
    assert places == sorted(places)
    shown.verdict.types[1].differences["missing"] = 700
    page = write_report(tmp_path, shown).read_text()
    assert "The first 1 of 700 differences; differences.parquet has them all" in page
    shown.verdict.types[1].differences["missing"] = 0
    passed = write_report(tmp_path, Shown(shown.verdict, [])).read_text()
    assert "<h2>Differences" not in passed


def test_the_page_says_how_it_was_made_and_labels_every_axis(shown: Shown, tmp_path: Path) -> None:
    (tmp_path / "timeline.csv").write_text(TIMELINE)
    summary = {"version": "9.8.7", "machine": {**MACHINE, "cpu": "another machine"}}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    page = write_report(tmp_path, shown).read_text()
    check_frame(page)
    assert "another machine, 2 cores" in page
    assert "The answers were made on 2026-02-03 at 04:05 UTC by <code>xstream made" in page
    assert len(drawn(page)) == 8


def test_plots_without_figures_are_left_out(tmp_path: Path) -> None:
    verdict = Verdict("paper", 20.0, True, 0, 0, 0, "")
    (tmp_path / "timeline.csv").write_text("wall_s,stream_s,lag_s\n")
    (tmp_path / "summary.json").write_text("not JSON")
    page = write_report(tmp_path, Shown(verdict, [])).read_text()
    check_frame(page)
    assert drawn(page) == []
    assert "Over the stream" not in page


@pytest.mark.chromium
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("size", ["1280,800", "390,844"])
def test_a_browser_draws_it(shown: Shown, tmp_path: Path, size: str) -> None:
    (tmp_path / "timeline.csv").write_text(TIMELINE)
    document = rendered(write_report(tmp_path, shown), tmp_path / "profile", size)
    assert document.count('class="main-svg"') >= 8
    assert "vehicle 4711 crossed into segment 36" in document
    assert "WRONG" in document
