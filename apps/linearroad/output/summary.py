"""The options and results of a run, for `summary.json`."""

from __future__ import annotations

import json
import platform
import resource
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from linearroad.files import whole
from linearroad.output.sink import RunResult
from linearroad.rules import DEFAULT_TARIFF, Tariff
from xstream.bench.report import machine as machine_now

__all__ = ["RunOptions", "machine", "write_summary"]


@dataclass(frozen=True)
class RunOptions:
    """How to run; see `xstream linearroad run --help`."""

    rules: str = "paper"
    speed: float | None = None  # None: full speed
    minutes: int | None = None
    form: str = "csv"
    scheduler: str = "df"
    memory: str = "refcount-lazy"
    threads: int = 1
    expressways: float | None = None  # None: those of the input
    answers: str = "write"  # or digest: counted and digested only
    keep_state: Path | None = None  # directory for the state at the end
    from_state: Path | None = None  # directory of the state to start with
    stop_when_late: bool = False  # stop at the first late answer
    allow_empty: bool = False  # accept an input without a usable row
    tariff: Tariff = DEFAULT_TARIFF  # of the thesis' rules
    checkpoint_s: float | None = None  # seconds between two checkpoints; None: none are taken
    resume: bool = False  # go on from the last checkpoint, if there is one


def write_summary(
    path: Path, result: RunResult, options: RunOptions, files: int, from_second: int
) -> None:
    """Write the options and figures of a run as JSON."""
    answers = list(result.answers.values())
    asked = ("balance requests", "expenditure requests", "travel-time requests")
    by_type = {"position reports": result.reports, **dict(zip(asked, answers[2:], strict=True))}
    summary = {
        **{
            name: getattr(result, name)
            for name in result.__dataclass_fields__
            if name not in ("digests", "idle_s")
        },
        "rows_by_type": by_type,
        "reports_per_second": result.reports_per_second,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "rules": options.rules,
        **({"tariff": asdict(options.tariff)} if options.rules == "thesis" else {}),
        "speed": options.speed or "max",
        "minutes": options.minutes,
        "from_second": from_second,
        "threads": options.threads,
        "expressways": files if options.expressways is None else options.expressways,
        "generated_expressways": files,
        "history_is_shared": options.expressways is not None and options.expressways > files,
        "answers_are": options.answers,
        "scheduler": options.scheduler,
        "memory": options.memory,
        "version": metadata.version("xstream"),
        "machine": machine(),
    }
    with whole(path) as temporary:  # a run without a summary has not finished
        temporary.write_text(json.dumps(summary, indent=2) + "\n")


def machine() -> dict[str, Any]:
    """Machine, versions, time and command line."""
    known = machine_now()
    return {
        "cpu": known.pop("processor"),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        **known,
    }
