"""STATFILTER against a plain loop, SILENCEFILTER against STATFILTER, and rate control."""

from __future__ import annotations

from typing import Any

from bench.engine import SMALL, add_figures, measured
from bench.report import Report
from xstream.bench.settings import Settings


def test_engine_statfilter_against_a_bare_loop(benchmark: Any, report: Report) -> None:
    from xstream.bench.table1 import statfilter

    found = measured(benchmark, statfilter, Settings(megabytes=64, **SMALL))
    add_figures(report, found, "bare numba loop, in cache")


def test_engine_silencefilter_against_statfilter(benchmark: Any, report: Report) -> None:
    from xstream.bench.table1 import silencefilter

    found = measured(benchmark, silencefilter, Settings(**SMALL))
    add_figures(report, found, "xstream, STATFILTER")


def test_engine_rate_control_under_ten_times_the_load(benchmark: Any, report: Report) -> None:
    from xstream.bench.ratecontrol import ratecontrol

    found = measured(benchmark, ratecontrol, Settings(trials=3, seconds=0.05, clock="processor"))
    for title, columns, rows in found.tables:
        report.table(title, list(columns), [[str(cell) for cell in row] for row in rows])
    add_figures(report, found, "at 10 times the load")
