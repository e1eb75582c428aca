"""The report of a benchmark: the figure, the baseline of the same run, the target, the machine."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Figure:
    """A measured figure and its baseline from the same run."""

    name: str
    measured: str
    baseline: str
    ratio: str
    floor: str
    reached: bool | None


def describe_machine() -> dict[str, str]:
    """Return machine, versions, commit and load, which are stored with every figure."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if _is_linux() else []:
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    return {
        "cpu": f"{cpu}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_version()}, numpy {np.__version__}",
        "commit": _git("describe", "--always", "--dirty") or "not a checkout",
        "load": f"{os.getloadavg()[0]:.2f}",
    }


def _is_linux() -> bool:
    return Path("/proc/cpuinfo").exists()


def _git(*arguments: str) -> str:
    answer = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return answer.stdout.strip()


def best_ns(work: Callable[[], object], calls: int, repeats: int = 80) -> float:
    """Return nanoseconds per call in the best of several series, the least disturbed one."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        for _ in range(calls):
            work()
        best = min(best, (time.perf_counter_ns() - begin) / calls)
    return best


class Report:
    """Collects figures and tables; `show` prints them at the end of the run."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self.tables: list[Table] = []

    def figure(
        self,
        name: str,
        measured: str,
        baseline: str,
        ratio: str,
        floor: str,
        reached: bool | None = None,
    ) -> None:
        """Add a line of the summary; `reached` says whether the target was reached in this run."""
        self.figures.append(Figure(name, measured, baseline, ratio, floor, reached))

    def table(self, title: str, columns: list[str], rows: list[list[str]]) -> None:
        """Add a table."""
        table = Table(*columns, title=title, title_justify="left", title_style="bold")
        for column in table.columns[1:]:
            column.justify = "right"
        for row in rows:
            table.add_row(*row)
        self.tables.append(table)

    def show(self, console: Console) -> None:
        """Print the machine, then all figures and tables."""
        if not (self.figures or self.tables):
            return
        for key, value in describe_machine().items():
            console.print(f"{key:>8}: {value}", highlight=False)
        for table in self.tables:
            console.print(table)
        if self.figures:
            columns = ["figure", "measured", "baseline, same run", "ratio", "must be", ""]
            summary = Table(*columns, title="Figures", title_justify="left", title_style="bold")
            for line in self.figures:
                mark = {True: "[green]reached", False: "[red]MISSED", None: ""}[line.reached]
                summary.add_row(
                    line.name, line.measured, line.baseline, line.ratio, line.floor, mark
                )
            console.print(summary)
