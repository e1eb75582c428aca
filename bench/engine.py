"""The benchmarks of `xstream bench`, at a small size for `make bench`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.report import Report
from xstream.bench.report import Report as Found
from xstream.bench.settings import Settings

#: CPU time, which other load on the machine affects less.
SMALL: Any = {"trials": 5, "seconds": 0.05, "clock": "processor"}


def measured(benchmark: Any, command: Callable[[Settings], Found], settings: Settings) -> Found:
    """Run a benchmark once; it warms up, checks its results and takes turns itself."""
    found: list[Found] = []
    benchmark.pedantic(lambda: found.append(command(settings)), rounds=1)
    benchmark.extra_info.update(found[0].to_json())
    return found[0]


def add_figures(report: Report, found: Found, baseline: str) -> None:
    """Add a line of the summary for each figure, with the named contender as the baseline."""
    against = next(result for result in found.results if result.name.startswith(baseline))
    beside = f"{against.name}: {against.samples_per_second / 1e6:,.0f} Msamples/s"
    for figure in found.figures:
        report.figure(
            f"{found.benchmark}: {figure.name}", f"{figure.value:,.3g} {figure.unit}", beside,
            f"best of {len(found.results[0].trials)}", figure.demand or "shown", figure.reached,
        )  # fmt: skip
