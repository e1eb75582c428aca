"""The cost of a hop: EngineBench, PASSCHAIN and a Python operator, at a small size."""

from __future__ import annotations

from typing import Any

from bench.engine import SMALL, add_figures, measured
from bench.report import Report
from xstream.bench.settings import Settings


def test_engine_hop_under_each_scheduler(benchmark: Any, report: Report) -> None:
    from xstream.bench.enginebench import enginebench

    settings = Settings(scheduler="all", operators=1000, **SMALL)
    found = measured(benchmark, enginebench, settings)
    for title, columns, rows in found.tables:
        report.table(title, list(columns), [[str(cell) for cell in row] for row in rows])
    add_figures(report, found, "fifo, library")


def test_engine_passchain(benchmark: Any, report: Report) -> None:
    from xstream.bench.table1 import passchain

    found = measured(benchmark, passchain, Settings(**SMALL))
    add_figures(report, found, "NoSigSeg")


def test_engine_python_operator(benchmark: Any, report: Report) -> None:
    from xstream.bench.pythonop import pythonop

    settings = Settings(kind="python", window=64, operators=1, **SMALL)
    found = measured(benchmark, pythonop, settings)
    add_figures(report, found, "compiled")
