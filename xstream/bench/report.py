"""`Report`: the results of a benchmark as data; the command line prints it."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from xstream.bench.trials import Result
from xstream.console import command_line

__all__ = ["Figure", "Report", "machine", "shown_value"]


def shown_value(value: float) -> str:
    """Format a value with three digits, and values from 1,000 in full."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value, with its target: a floor or a ceiling."""

    name: str
    value: float
    unit: str
    floor: float | None = None
    ceiling: float | None = None

    @property
    def reached(self) -> bool | None:
        """Whether the value reaches its target; None if it has none."""
        if self.floor is not None:
            return self.value >= self.floor
        if self.ceiling is not None:
            return self.value <= self.ceiling
        return None

    @property
    def demand(self) -> str:
        """The target in words."""
        if self.floor is not None:
            return f"at least {self.floor:g}"
        return f"at most {self.ceiling:g}" if self.ceiling is not None else ""

    @property
    def shown(self) -> str:
        """The formatted value.

        >>> Figure("a", 0.01234, "s").shown, Figure("b", 2184.7, "times").shown
        ('0.0123', '2,185')
        """
        return shown_value(self.value)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name, "value": self.value, "unit": self.unit, "floor": self.floor,
            "ceiling": self.ceiling, "reached": self.reached,
        }  # fmt: skip


@dataclass(slots=True)
class Report:
    """Results of contenders that were measured in turns, and the figures derived from them."""

    benchmark: str
    settings: dict[str, Any]
    results: list[Result] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    #: Further tables: title, names of the columns, rows.
    tables: list[tuple[str, tuple[str, ...], list[tuple[Any, ...]]]] = field(default_factory=list)
    #: The reference that the results were checked against; a failed check gives no report.
    checked: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def samples_per_second(self) -> float:
        """Samples per second in the best trial of the first contender, which is the engine."""
        return self.results[0].samples_per_second

    @property
    def disturbance(self) -> str | None:
        """A warning if the machine was too busy for reliable figures."""
        share = min(result.best.processor_share for result in self.results)
        if share > 0.9:
            return None
        return (
            f"The machine is busy: a best trial had a processor for {share:.0%} of its time only, "
            f"at a load of {machine()['load']:.1f}; the figures are lower than they should be."
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data, with `samples_per_second` at the top level."""
        return {
            "benchmark": self.benchmark,
            "samples_per_second": self.samples_per_second,
            "spread": self.results[0].spread,
            "loading_seconds": self.results[0].loading_seconds,
            "settings": self.settings,
            "results": [result.to_json() for result in self.results],
            "figures": [figure.to_json() for figure in self.figures],
            "tables": [
                {"title": title, "rows": [dict(zip(columns, row, strict=True)) for row in rows]}
                for title, columns, rows in self.tables
            ],
            "checked": self.checked,
            "notes": [*self.notes, *([self.disturbance] if self.disturbance else [])],
            "machine": machine(),
        }


@lru_cache(maxsize=1)
def _commit() -> str | None:
    here = Path(__file__).resolve().parent
    try:
        asked = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty"],
            capture_output=True, text=True, timeout=5, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip() or None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """Describe the machine, version, date and command of a measurement."""
    from importlib.metadata import version

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "xstream": version("xstream"),
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command_line(),
    }
