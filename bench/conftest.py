"""Prints all figures at the end of the run, and stores machine and load with saved figures."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from bench.report import Report, describe_machine

_report = Report()


@pytest.fixture
def report() -> Report:
    return _report


def pytest_benchmark_update_machine_info(config: Any, machine_info: dict[str, Any]) -> None:
    machine_info.update(describe_machine())


def pytest_terminal_summary(terminalreporter: Any) -> None:
    width = None if terminalreporter.isatty else 150
    _report.show(Console(file=terminalreporter._tw._file, width=width))
