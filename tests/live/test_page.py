"""The live page in Chromium: it follows a run, shows an operator's curve, and the run's end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import xstream as xs
from tests.browser import KEEP
from tests.live.browser import CHROMIUM, Browser, Page, browsing
from tests.live.graphs import running

pytestmark = [
    pytest.mark.chromium,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture(autouse=True)
def no_errors(browser: Browser) -> Iterator[None]:
    """Nothing may be thrown, nor refused by the security policy of the page."""
    browser.errors.clear()
    yield
    browser.close_pages()
    assert browser.errors == []


def click_operator(page: Page, name: str) -> None:
    """Click an operator where it stands on the screen."""
    x, y = page.value(f"""(() => {{
        const {{ graph, state }} = window.xstream, box = graph.canvas.getBoundingClientRect();
        const i = state.header.nodes.findIndex(([name]) => name === {json.dumps(name)});
        const [x, y] = graph.toScreen(...graph.centres[i]);
        return [box.left + x, box.top + y];
    }})()""")
    page.click(x, y)


def drawn(page: Page, selector: str) -> int:
    """The number of pixels of a canvas that are not empty."""
    count: int = page.value(f"""(() => {{
        const canvas = document.querySelector({json.dumps(selector)});
        const {{ data }} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return data.filter((value, i) => i % 4 === 3 && value > 0).length;
    }})()""")
    return count


READY = "window.xstream && window.xstream.state.frame && window.xstream.state.frame.t"


def test_the_page_follows_a_run_to_its_end(browser: Browser) -> None:
    with running(xs.Live()) as (address, stop):
        page = browser.open(address)
        page.until(READY)
        assert page.value("document.title") == "endless · xstream live"
        assert page.value("document.getElementById('phase').textContent") == "running"
        cell = "document.querySelector('#rows .row').lastChild.textContent"
        before = page.until(cell)
        page.until(f"{cell} !== {json.dumps(before)}")
        assert drawn(page, "#graph") > 1000
        click_operator(page, "wide")
        page.until("document.querySelector('#detail h2').textContent === 'wide'")
        length = "window.xstream.state.curves?.t.length"
        points = page.until(f"{length} > 1 && {length}")
        assert drawn(page, "#detail canvas") > 200
        page.until(f"window.xstream.state.curves.t.length > {points}")
        assert page.value("window.xstream.state.curves.tuples.at(-1)") > 0
        # No curve begins with a zero that was only the absence of a rate.
        assert page.value("window.xstream.state.totals.samples[0]") > 0
        stop.set()
        page.until("document.getElementById('phase').textContent === 'stopped'")
    total = page.value(cell)
    time.sleep(1.5)
    assert page.value(cell) == total  # the last state stays readable
    assert page.value("document.getElementById('phase').textContent") == "stopped"


def test_an_error_of_the_run_is_shown(browser: Browser) -> None:
    query = xs.Query("breaks")
    recording = xs.io.array(np.ones(4000), rate_hz=1000.0, window=10, repeat=1 << 40)
    opened: list[bool] = []

    def broken(segment: xs.SigSeg) -> None:
        if opened:
            raise ValueError("no <such> station")

    query.source(xs.io.paced(recording), name="ones").sink(broken, name="radio")
    live = xs.Live()

    def run(**named: object) -> None:
        with pytest.raises(xs.OperatorError):
            query.run(**named)  # type: ignore[arg-type]

    with running(live, run) as (address, _):
        page = browser.open(address)
        page.until(READY)
        opened.append(True)
        page.until("document.getElementById('phase').textContent === 'failed'")
        message = page.value("document.getElementById('message').textContent")
        assert "no <such> station" in message
        assert page.value("document.getElementById('message').hidden") is False


def test_a_thousand_operators_stay_fluid(browser: Browser) -> None:
    """Drawing a frame takes a fraction of the half second, also while the graph is moved."""
    query = xs.Query("thousand")
    zeros = np.zeros(2560, np.float32)
    recording = xs.io.array(zeros, rate_hz=25_600.0, window=256, repeat=1 << 40)
    source = query.source(xs.io.paced(recording), name="source")
    for branch in range(25):
        stream = source
        for place in range(39):
            stream = stream.rewindow(256, name=f"cut {branch}.{place}")
        stream.count(name=f"count {branch}")
    with running(xs.Live(), query) as (address, _):
        page = browser.open(address)
        page.until(READY, 90)
        assert page.value("window.xstream.state.header.nodes.length") == 1001
        assert page.value("document.querySelectorAll('#rows .row').length") < 40
        took = page.value("""(async () => {
            const { graph } = window.xstream, took = [];
            graph.drawn_ms.length = 0;
            for (let i = 0; i < 40; i += 1) {
                graph.scale(i < 20 ? 1.1 : 1 / 1.1);
                await new Promise(requestAnimationFrame);
            }
            return graph.drawn_ms.sort((a, b) => a - b);
        })()""")
        assert len(took) >= 30
        print(f"frame times in ms: median {took[len(took) // 2]:.1f}, longest {took[-1]:.1f}")
        picture(page, "live-thousand-desktop")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420], ids=["desktop", "phone"])
def test_the_page_fits_every_screen(browser: Browser, width: int, dark: bool) -> None:
    road = xs.HeatMap(
        "road", "Speed of the road", rows=20, limits=(0, 100), unit="mi/h", across="minute",
        up="segment", marked="segments with an accident",
    )  # fmt: skip
    for minute in range(30):
        road.add(minute, np.linspace(5, 100, 20), [7] if 10 < minute < 15 else [])
    times = {"alerts": {"p50": 0.1, "p99": 1.8, "worst": 6.5, "limit": 5, "late": 3}}
    delays = xs.Limits("delays", "Response times", lambda: times)
    with running(xs.Live(panels=[road, delays])) as (address, _):
        page = browser.open(address, width, 900, dark)
        page.until(READY)
        page.until("!!document.querySelector('.delays .figures')")
        assert page.value("document.documentElement.scrollWidth <= window.innerWidth")
        for selector in ("#graph", "#panels canvas", "#detail canvas", "#ramp"):
            assert drawn(page, selector) > 100, selector
        paper = page.value("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(18, 24, 31)" if dark else "rgb(255, 255, 255)")
        time.sleep(1.0)
        picture(page, f"live-{'phone' if width < 600 else 'desktop'}-{'dark' if dark else 'light'}")


def picture(page: Page, name: str) -> None:
    if KEEP:
        Path(KEEP).mkdir(parents=True, exist_ok=True)
        page.picture(Path(KEEP) / f"{name}.png")
