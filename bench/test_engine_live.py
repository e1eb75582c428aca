"""What a live view costs, with a graph of a thousand operators and an open page."""

from __future__ import annotations

from functools import partial
from typing import Any

import xstream as xs
from bench.engine import add_figures, measured
from bench.report import Report
from xstream.bench.settings import Settings


def test_engine_live_view(benchmark: Any, report: Report) -> None:
    from xstream.bench.live import CHAIN, live

    settings = Settings(operators=1000, trials=3, seconds=5.0, clock="processor")
    view = xs.Live(say=lambda line: None)
    found = measured(benchmark, partial(live, subject=CHAIN, page_view=view), settings)
    add_figures(report, found, "chain, nobody")
