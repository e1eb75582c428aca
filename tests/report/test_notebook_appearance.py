"""What notebooks show of queries, runs, segments and statistics, in a light and a dark page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import xstream as xs
from tests.browser import FORMS, Browser, Form, needs_chromium
from tests.report.appearance import INSPECT

pytestmark = [pytest.mark.chromium, needs_chromium]
#: As in a notebook, the page decides about the colour of text; cells do not scroll the page.
PAGE = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>:root{color-scheme:light dark}body{font:14px sans-serif;margin:1em;color:#111;
background:#fff}
@media(prefers-color-scheme:dark){body{color:#e0e0e0;background:#111}}
.cell{margin:1em 0;overflow-x:auto}</style>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


def shown() -> dict[str, str]:
    """The HTML of one object of each kind."""
    time = np.arange(4096) / 8000
    tone = np.sin(2 * np.pi * 5 * time).astype(np.float32)
    query = xs.Query("notebook")
    source = query.source(xs.io.array(tone, rate_hz=8000.0, window=64), name="recording")
    windows = source.rewindow(256)
    low, high = windows.mean(name="mean"), windows.std(name="deviation")
    out = low.zip(high).collect()
    run = query.run()
    assert len(run[out]) == 16
    values = (query, run, xs.SigSeg(tone), run.stats["mean"])
    return {type(value).__name__: value._repr_html_() for value in values}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_notebook_shows_a_graph_a_waveform_and_tables(
    browser: Browser, form: Form, tmp_path: Path
) -> None:
    cells = shown()
    assert set(cells) == {"Query", "Run", "SigSeg", "OperatorStats"}
    page = tmp_path / "notebook.html"
    page.write_text(PAGE + "".join(
        f'<div class="cell" id="{name}">{text}</div>' for name, text in cells.items()
    ))  # fmt: skip
    browser.appear(form)
    browser.open(page.as_uri())
    assert [*browser.run(INSPECT), *browser.errors()] == []
    assert browser.run("document.querySelectorAll('#Query svg rect.box').length") == 6
    assert browser.run("document.querySelector('#SigSeg polyline').getBBox().width") > 500
    assert browser.run("document.querySelectorAll('#Run tbody tr').length") == 6
    assert browser.run("document.querySelectorAll('#OperatorStats tbody tr').length") == 1
    browser.screenshot(tmp_path / f"notebook-{form.name}.png")


def test_a_picture_of_its_own_follows_the_scheme(browser: Browser, tmp_path: Path) -> None:
    query = xs.Query("alone")
    query.source(xs.io.array(np.zeros(8), window=4)).mean().count()
    (tmp_path / "alone.svg").write_text(query.draw())
    found = []
    for form in FORMS[:2]:
        browser.appear(form)
        browser.open((tmp_path / "alone.svg").as_uri())
        found.append(browser.run("getComputedStyle(document.querySelector('text')).fill"))
    assert found == ["rgb(51, 71, 91)", "rgb(213, 222, 231)"]
