"""`xstream report`: all results on one page, and the pages themselves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.apps.command import call
from tests.experiments.test_experiments import OWN
from tests.report.figures import MACHINE, check_frame, drawn
from xstream.bench.experiment import Scale, run_experiment
from xstream.bench.profile import compare, variants
from xstream.report import plots
from xstream.report.experiment_page import experiment_page
from xstream.report.gathered import gather, gathered_page
from xstream.report.page import document, origin_html, paragraphs, plots_html, table_html, write
from xstream.report.profile_page import profile_page

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of everything, in folders of their own."""
    folder = tmp_path_factory.mktemp("results")
    outcome = run_experiment(OWN, Scale(trials=3)).to_json()
    write(folder / "own" / "results.json", json.dumps({"outcome": outcome}))
    query = xs.Query("halves")
    query.source(xs.io.array(np.zeros(64), window=8)).rewindow(4).count()
    found = compare(lambda: query, variants("all", "df", "8"), trials=1).to_json()
    write(folder / "profile.json", json.dumps({"profile": found}))
    rating = {"rating": {"expressways": 3, "seconds": [{"p": 99, "ms": 12.5}], "rules": "paper"}}
    write(folder / "road.json", json.dumps(rating))
    write(folder / "notes.json", json.dumps(["somebody else's"]))
    write(folder / "broken.json", "{")
    return folder


def test_everything_below_the_folder_is_gathered(results: Path) -> None:
    assert [kind for kind, _, _ in gather(results)] == ["outcome", "profile", "rating"]
    page = gathered_page(results)
    text = page.split("<body>")[1]
    for wanted in ("An experiment", "Memory managers under halves", "Rating road", "expressways"):
        assert wanted in text
    plots = re.findall(r'class="plot" id="(\w+)"', text)
    assert len(plots) == len(set(plots)) == 5
    assert all(f'figure("{plot}"' in text for plot in plots)
    assert page.count("<h1>") == 1
    for anchor in re.findall(r'href="#(\w+)"', text):
        assert f'id="{anchor}"' in text


def test_the_command_writes_the_page(
    results: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "all.html"
    assert call(monkeypatch, "report", results, "--out", page, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["gathered"]) == 3
    assert page.stat().st_size > 10_000
    assert call(monkeypatch, "report", results, "--out", page) == 0
    said = capsys.readouterr().out
    assert "experiment " in said
    assert "page: " in said
    assert "1 experiment, 1 profile, 1 rating" in page.read_text()


def test_benchmarks_that_were_stored_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ("--trials", "1", "--samples", "4096", "--operators", "2")
    assert call(monkeypatch, "bench", "passchain", *small, "--json") == 0
    (tmp_path / "passchain.json").write_text(capsys.readouterr().out)
    page = gathered_page(tmp_path)
    assert "Benchmark passchain" in page
    assert "segments against one tuple per sample" in page
    assert "plotly.js" not in page


def test_nothing_to_show_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "report", tmp_path) == 2
    assert "contains no results" in capsys.readouterr().err
    assert call(monkeypatch, "report", tmp_path / "nowhere") == 2
    assert "is not a directory" in capsys.readouterr().err
    (tmp_path / "old.json").write_text(json.dumps({"profile": {"profiles": []}}))
    assert call(monkeypatch, "report", tmp_path) == 2
    said = capsys.readouterr().err
    assert "old.json is not a valid result file" in said
    assert len(said.strip().splitlines()) == 1


def test_tables_put_numbers_right_and_escape_names() -> None:
    table = table_html(("name", "n"), [("<x>", "1,234.5"), ("y", "-")])
    assert '<td class="n">1,234.5</td>' in table
    assert "<td>&lt;x&gt;</td>" in table
    assert paragraphs("a\nb\n\n`c`") == "<p>a\nb</p><p><code>c</code></p>"


def test_pages_say_how_their_figures_were_made_and_label_every_axis(results: Path) -> None:
    found = {kind: data[kind] for kind, _, data in gather(results)}
    for kind, page_of in (("outcome", experiment_page), ("profile", profile_page)):
        page = page_of(found[kind] | {"machine": MACHINE})
        check_frame(page, "Xeon &lt;2&gt;, 2 cores", "xstream 9.8.7, commit abc1234")
        check_frame(page, "2026-02-03 at 04:05 UTC by <code>xstream made &#x27;a b&#x27; --of")
        assert drawn(page)
    check_frame(gathered_page(results))
    assert "were not recorded" in origin_html({"processor": "Xeon", "cores": 2})
    assert "by a Python program" in origin_html(MACHINE | {"command": ""})


def test_a_command_is_shown_as_it_was_typed(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "all.html"
    monkeypatch.chdir(results.parent)
    assert call(monkeypatch, "report", results.name, "--out", page) == 0
    check_frame(page.read_text(), f"<code>xstream report {results.name} --out {page}</code>")


def test_plots_with_nothing_to_show_are_left_out() -> None:
    nothing = plots.lines("empty", "x", "y", {"a": [], "b": [(1, float("nan"), 0.0)]})
    bars = plots.stacked_bars("no bars", "x", "y", [], {"part": []})
    something = plots.lines("a <line>", "x", "y", {"a": [(1, 2.0, 0.0)]})
    html = plots_html([nothing, something, bars, plots.lines("none", "x", "y", {})], 7)
    assert html.count("<script>figure(") == 1
    assert '<h3>a &lt;line&gt;</h3><div class="plot" id="plot7"' in html
    page = document("t", [html], MACHINE)
    assert "empty" not in page.split("</script></head>")[1]
    assert plots_html([nothing]) == ""


@pytest.mark.parametrize("draw", [plots.bars, plots.lines])
def test_confidence_intervals_of_rates_end_at_zero(draw: Callable[..., Any]) -> None:
    points = [("a", 10.0, 4.0), ("b", 3.0, 5.0), ("c", 0.0, 1.0), ("d", -2.0, 1.0)]
    (trace,) = draw("rates", "x", "samples/s", {"ours": points}).data
    assert list(trace.error_y.array) == [4.0, 5.0, 1.0, 1.0]
    assert [y - low for y, low in zip(trace.y, trace.error_y.arrayminus, strict=True)] == [
        6.0, 0.0, 0.0, -3.0,
    ]  # fmt: skip


def test_ticks_of_logarithmic_axes_are_whole_numbers() -> None:
    series = {"a": [(1, 0.3, 0.0), (2, 40.0, 0.0), (3, 0.0, 0.0)]}
    for drawing in (plots.lines, plots.bars):
        figure = drawing("", "x", "y", series, log_y=True)
        assert {"0.1", "0.2", "0.5", "1", "20", "100"} <= set(figure.layout.yaxis.ticktext)


def test_a_page_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "page.html"
    write(path, document("t", [], MACHINE))
    assert path.read_text().endswith("</html>\n")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.chromium
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("size", ["1280,900", "390,844"])
def test_a_browser_draws_every_plot_and_nothing_is_wider_than_the_screen(
    results: Path, tmp_path: Path, size: str
) -> None:
    assert CHROMIUM is not None
    page = tmp_path / "page.html"
    told = (
        "<script>window.addEventListener('load',function(){setTimeout(function(){"
        "var p=document.createElement('p');p.id='told';var d=document.documentElement;"
        "p.textContent='wide '+(d.scrollWidth>d.clientWidth);document.body.appendChild(p)},500)})"
        "</script></body>"
    )
    page.write_text(gathered_page(results).replace("</body>", told))
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={size}",
         "--virtual-time-budget=10000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.count('class="main-svg"') >= 5
    assert 'id="told">wide false' in done.stdout
