"""What a hop costs: EngineBench and PASSCHAIN, a Python operator, at a small size."""

from __future__ import annotations

from typing import Any

import pytest

from bench.engine import add_figures, measured
from bench.reporting import Report
from xstream.bench.settings import Settings


@pytest.mark.parametrize("operators", [1000])
def test_engine_hop_under_each_scheduler(benchmark: Any, report: Report, operators: int) -> None:
    from xstream.bench.enginebench import enginebench

    settings = Settings(scheduler="all", operators=operators, trials=5, seconds=0.05)
    found = measured(benchmark, enginebench, settings)
    for title, columns, rows in found.tables:
        report.table(title, list(columns), [[str(cell) for cell in row] for row in rows])
    add_figures(report, found, "the paper: df 5.8 times as fast as the others")


def test_engine_passchain(benchmark: Any, report: Report) -> None:
    from xstream.bench.table1 import passchain

    found = measured(benchmark, passchain, Settings(trials=5, seconds=0.05))
    add_figures(report, found, "NoSigSeg, one tuple a sample")


def test_engine_python_operator(benchmark: Any, report: Report) -> None:
    from xstream.bench.pythonop import pythonop

    settings = Settings(kind="python", window=64, operators=1, trials=5, seconds=0.05)
    found = measured(benchmark, pythonop, settings)
    add_figures(report, found, "the same compiled")
