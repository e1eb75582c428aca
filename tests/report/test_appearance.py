"""Every page, on a desk and on a phone, in light and dark, as Chromium shows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linearroad.description.demo_page import road_parts
from linearroad.description.page import write_page as write_description
from linearroad.description.story import Event, Story
from linearroad.peers.page import write_page as write_comparison
from linearroad.rating.page import write_page as write_rating
from linearroad.validation.page import write_report

import xstream as xs
from tests.browser import FORMS, Browser, needs_chromium
from tests.experiments.test_experiments import OWN
from tests.linearroad.description.test_page import accident, late_figures
from tests.linearroad.rating.test_page import KINDS, SEARCH, rating, timeline
from tests.linearroad.validation.test_page import TIMELINE, example
from tests.report.appearance import INSPECT, check_appearance
from tests.report.figures import MACHINE
from tests.yabench.test_page import written as written_yabench
from xstream.bench.experiment import Scale, run_experiment
from xstream.bench.profile import compare, variants
from xstream.report.experiment_page import experiment_page
from xstream.report.gathered import gathered_page
from xstream.report.heat import heat_map, png
from xstream.report.page import document, paragraphs, plots_html, table_html, write
from xstream.report.plots import boxes, lines
from xstream.report.profile_page import profile_page

pytestmark = [pytest.mark.chromium, needs_chromium]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


def a_profile() -> dict[str, Any]:
    query = xs.Query("halves")
    query.source(xs.io.array(np.zeros(4096), window=8)).rewindow(512).mean().count()
    return compare(lambda: query, variants("all", "df", "8"), trials=1).to_json()


def experiment(folder: Path) -> Path:
    write(path := folder / "experiment.html",
          experiment_page(run_experiment(OWN, Scale(trials=3)).to_json()))  # fmt: skip
    return path


def profile(folder: Path) -> Path:
    write(path := folder / "profile.html", profile_page(a_profile()))
    return path


def report(folder: Path) -> Path:
    results = folder / "results"
    outcome = run_experiment(OWN, Scale(trials=3)).to_json()
    write(results / "own" / "results.json", json.dumps({"outcome": outcome}))
    write(results / "profile.json", json.dumps({"profile": a_profile()}))
    write(path := folder / "report.html", gathered_page(results))
    return path


def description(folder: Path) -> Path:
    write_description(path := folder / "describe.html", late_figures(), [
        accident(40.0, -300, 900), accident(20.0, 30, 60, 1)
    ])  # fmt: skip
    return path


def validation(folder: Path) -> Path:
    (folder / "timeline.csv").write_text(TIMELINE)
    return write_report(folder, example()).rename(folder / "validation.html")


def demo(folder: Path) -> Path:
    reports = np.array([[30 * i, 40 - i, 5280 * 42 - 2000 * i] for i in range(20)], np.int64)
    story = Story(4711, 0, reports, tolls=[30, 0], alerts=1, balance=12_345)
    story.events = [Event(30, 0, "a toll of 30 for the segment: the average speed is 39 mph"),
                    Event(300, 1, "alert: accident in segment 40"),
                    Event(330, 2, "asks for its balance: 12,345, as of second 330")]  # fmt: skip
    parts = road_parts(late_figures(), [accident(40.0, -300, 900)], story)
    return write_report(folder, example(), "Linear Road: the demo", parts).rename(
        folder / "demo.html"
    )


def the_rating(folder: Path) -> Path:
    timelines = [timeline(each, 60) if each["wall_s"] else [] for each in SEARCH]
    write_rating(path := folder / "rating.html", rating(*SEARCH), timelines)
    return path


def yabench(folder: Path) -> Path:
    return written_yabench(folder / "yabench.html")


def comparison(folder: Path) -> Path:
    def probe(rated: float, passed: bool) -> dict[str, Any]:
        return {
            "rated": rated, "passed": passed, "why": "" if passed else "an answer was late",
            "response_s": {name: {"worst": rated / 9} for name in KINDS}, "rows": 1_234_567,
            "cpu_s": 60.0, "wall_s": 90.0, "peak_memory_bytes": 2e9, "start_s": 3.5,
            "worst_s": rated / 9,
        }  # fmt: skip

    def system(name: str, title: str, rated: float, missing: str = "") -> dict[str, Any]:
        probes = [probe(rated / 2, True), probe(rated, True), probe(rated * 2, False)]
        return {"name": name, "title": title, "l": rated, "missing": missing, "leaves_out": [],
                "validated": "", "probes": [] if missing else probes}  # fmt: skip

    found = {
        "sentence": "xstream has the largest L, 40; the next, a very long name of a system, has 2.",
        "systems": [system("xstream", "xstream", 40.0), system("other", "A relational system", 2.0),
                    system("flink", "Flink", 0.0, "javac was not found: install a JDK")],
        "from_minute": 150, "minutes": 2, "speed": 4.0, "base": {"expressways": 10},
        "version": "1.2.3",
        "machine": {**MACHINE, "cpu": "AMD EPYC", "memory_bytes": 25e9},
    }  # fmt: skip
    write_comparison(path := folder / "comparison.html", found)
    return path


PAGES = (
    demo,
    experiment,
    profile,
    report,
    description,
    validation,
    the_rating,
    yabench,
    comparison,
)
#: What is looked at without `make test-slow`: a page of plots and one of tables.
QUICK = (demo, profile)


@pytest.mark.parametrize(
    "page_of",
    [
        pytest.param(page, id=page.__name__, marks=[] if page in QUICK else pytest.mark.slow)
        for page in PAGES
    ],
)
def test_a_page_is_legible_everywhere(
    browser: Browser, page_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    check_appearance(browser, page_of(tmp_path), tmp_path)


def test_boxes_show_range_quartiles_and_median() -> None:
    figure = boxes("t", "x", "y", {"a": [5.0, 1.0, 2.0, 3.0, 4.0], "none": [], "one": [7.0]})
    assert [list(trace.y) for trace in figure.data] == [
        [1, 5], [2, 4], [3], [7, 7], [7, 7], [7],
    ]  # fmt: skip


def test_heat_maps_are_images_and_keep_missing_values_clear(
    browser: Browser, tmp_path: Path
) -> None:
    values = np.array([[0.0, np.nan], [50.0, 100.0]])
    (tmp_path / "map.png").write_bytes(png(values, 0, 100))
    browser.open((tmp_path / "map.png").as_uri())
    pixels = browser.run(
        "(()=>{const c=document.createElement('canvas').getContext('2d');"
        "c.drawImage(document.images[0],0,0);return [...c.getImageData(0,0,2,2).data]})()"
    )
    assert pixels[:4] == [0xA5, 0x00, 0x26, 255]
    assert pixels[7] == 0
    assert pixels[8:12] == [0xFE, 0xE0, 0x90, 255]
    assert pixels[12:] == [0x45, 0x75, 0xB4, 255]
    nothing = heat_map("t", "x", "y", np.full((2, 2), np.nan), (1, 1), (0, 1), "mph")
    assert plots_html([nothing]) == ""


def test_a_page_changes_its_colours_and_prints_dark_on_white(
    browser: Browser, tmp_path: Path
) -> None:
    browser.appear(FORMS[1])
    browser.open(description(tmp_path).as_uri())
    paper = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('.plot text.xtitle')).fill"
    assert browser.run(paper) == "rgb(18, 24, 31)"
    assert browser.run(ink) == "rgb(230, 235, 240)"
    browser.appear(FORMS[0])
    browser.wait_for(f"{ink} === 'rgb(28, 39, 51)'")
    browser.appear(FORMS[1])
    browser.wait_for(f"{ink} === 'rgb(230, 235, 240)'")
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.wait_for(f"{ink} === 'rgb(28, 39, 51)'")
    browser.send("Emulation.setEmulatedMedia", media="print")
    assert browser.run(paper) == "rgb(255, 255, 255)"
    assert browser.send("Page.printToPDF")["data"]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<div style="width:2000px">long</div>', "wide"),
        ('<p style="color:var(--line)">hardly there</p>', "faint"),
        ('<p style="font-size:6px">tiny</p>', "small"),
        ("<script>missing()</script>", "error"),
        ('<div class="plot" id="plot0"></div>', "not drawn"),
        ('<img src="nowhere.png">', "error"),
        (table_html(("a", "b"), [("x" * 40, "y" * 60)] * 3), ""),
        (plots_html([lines("a", "x", "y", {"one": [(1, 2, 0), (2, 3, 0)]})]), ""),
        (paragraphs("plain"), ""),
    ],
)
def test_the_checks_find_what_is_wrong(
    browser: Browser, tmp_path: Path, body: str, fault: str
) -> None:
    page = tmp_path / "page.html"
    page.write_text(document("A page", [body], MACHINE))
    browser.appear(FORMS[3])
    browser.open(page.as_uri())
    found = [*browser.run(INSPECT), *(f"error: {error}" for error in browser.errors())]
    assert [each for each in found if not fault or not each.startswith(fault)] == []
    assert bool(found) == bool(fault)
