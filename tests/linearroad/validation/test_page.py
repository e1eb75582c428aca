"""The page of `validate --report`, opened as a person would: in a browser, large and small."""

from __future__ import annotations

from pathlib import Path

import pytest
from linearroad.validation.report import write_report
from linearroad.validation.validate import Shown
from linearroad.validation.verdict import Verdict

from tests.linearroad.describe.test_page import CHROMIUM, rendered

TIMELINE = """wall_s,stream_s,lag_s,rows,answers,memory_bytes,cpu_s,surprise
1.0,20,0.01,100,50,200000000,0.9,7
2.0,40,0.02,300,150,210000000,1.7,7
3.0,60,0.01,
"""


@pytest.fixture
def shown() -> Shown:
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


def test_the_page_needs_nothing_else_and_shows_the_resources(shown: Shown, tmp_path: Path) -> None:
    (tmp_path / "timeline.csv").write_text(TIMELINE)
    page = write_report(tmp_path, shown).read_text()
    assert "<script src=" not in page
    assert "<link" not in page
    assert "Memory of the run" in page
    assert "&lt;none&gt;" in page  # what others wrote is text, not markup
    (tmp_path / "timeline.csv").unlink()
    assert "Memory of the run" not in write_report(tmp_path, shown).read_text()


@pytest.mark.chromium
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("size", ["1280,800", "390,844"])
def test_a_browser_draws_it(shown: Shown, tmp_path: Path, size: str) -> None:
    (tmp_path / "timeline.csv").write_text(TIMELINE)
    document = rendered(write_report(tmp_path, shown), tmp_path / "profile", size)
    assert document.count('class="main-svg"') >= 8
    assert "vehicle 4711 crossed into segment 36" in document
    assert "WRONG" in document
