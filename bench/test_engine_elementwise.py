"""Element-wise maps against bare loops, at a small size."""

from __future__ import annotations

from typing import Any

from bench.engine import SMALL, add_figures, measured
from bench.report import Report
from xstream.bench.settings import Settings


def test_engine_elementwise_maps_against_bare_loops(benchmark: Any, report: Report) -> None:
    from xstream.bench.elementwise import elementwise

    found = measured(benchmark, elementwise, Settings(megabytes=64, **SMALL))
    add_figures(report, found, "1 map, bare loop into a buffer, in cache")
