"""One step of a rating: a run in a separate process, and its result."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from linearroad.output.digests import Digests, differences, read_digests
from xstream.console.timeline import Row, read_timeline

__all__ = ["Setting", "Step", "call", "complete", "fill", "l_text", "run_step"]

_PROGRAM = "import sys; from xstream.cli import main; sys.exit(main())"
Say = Callable[[str], None]


def l_text(rated: float) -> str:
    """An L as text.

    >>> l_text(1200), l_text(1.5)
    ('1,200', '1.5')
    """
    return f"{rated:,.0f}" if rated % 1 == 0 else f"{rated:,.1f}"


@dataclass(frozen=True)
class Setting:
    """The settings that all runs of a rating share."""

    base: Path
    threads: int
    speed: float


@dataclass
class Step:
    """The result of a step, as shown on the page and in `rating.json`."""

    expressways: int
    kind: str  # probe or full
    speed: float
    from_minute: int
    to_minute: int
    passed: bool = False
    why: str = ""
    response_s: dict[str, dict[str, float]] = field(default_factory=dict)
    worst_lag_s: float = 0.0
    reports: int = 0
    reports_per_second: float = 0.0
    answers: int = 0
    peak_memory_bytes: int = 0
    needed_bytes: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    digests: dict[str, Any] = field(
        default_factory=lambda: {"compared": 0, "different": 0, "first": []}
    )
    stage_ns: dict[str, float] = field(default_factory=dict)
    stall: str = ""
    #: Expressways per file: less than 1 if the last of the base has one direction only.
    share: float = 1.0

    @property
    def rated(self) -> float:
        """L, in which a half expressway counts as half."""
        return self.expressways * self.share

    @property
    def worst_s(self) -> float:
        """The longest response time of any answer."""
        return max((each["worst"] for each in self.response_s.values()), default=0.0)

    def line(self) -> str:
        """The result in one line."""
        what = (
            f"L = {l_text(self.rated)}, minutes {self.from_minute} to {self.to_minute} at speed "
            f"{self.speed:g}"
        )
        if not self.passed:
            return f"{what}: did not pass: {self.why}"
        return (
            f"{what}: passed, worst {self.worst_s:.3f} s, {self.peak_memory_bytes / 2**30:.1f} GiB,"
            f" {self.reports_per_second / 1e6:.1f} million reports/s"
        )

    def as_dict(self) -> dict[str, Any]:
        """For `rating.json`."""
        return asdict(self)


def run_step(
    step: Step, setting: Setting, out: Path, reference: Digests, state: Path | None, say: Say
) -> list[Row]:
    """Run a step and fill in its result; returns its timeline."""
    command = [
        *("linearroad", "run", "--input", str(setting.base), "--history", str(setting.base)),
        *("--expressways", l_text(step.rated).replace(",", ""), "--threads", str(setting.threads)),
        *("--speed", f"{step.speed:g}", "--answers", "digest", "--out", str(out)),
        *(("--from-state", str(state)) if state is not None else ()),
        "--stop-when-late",
    ]
    rows = complete(step, command, out, say)
    if not step.why:
        _compare(step, out / "digests.parquet", reference)
    step.passed = not step.why
    return rows


def complete(step: Step, command: list[str], out: Path, say: Say) -> list[Row]:
    """Execute the run of a step and fill in its figures; returns its timeline."""
    summary = out / "summary.json"
    summary.unlink(missing_ok=True)  # of an earlier rating; a refused run would leave it
    said = call(command, say)
    if not summary.exists():
        step.why = said[-1].removeprefix("xstream: ") if said else "it ended without a word"
        return []
    fill(step, json.loads(summary.read_text()))
    rows = read_timeline(out / "timeline.csv")
    if rows:
        step.cpu_s, step.wall_s = rows[-1]["cpu_s"], rows[-1]["wall_s"]
    return rows


def call(command: list[str], say: Say) -> list[str]:
    """Run an xstream command in a separate process; passes on and returns its output."""
    said = []
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *command], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            for line in process.stderr:
                said.append(line.rstrip())
                say(f"  {said[-1]}")
            process.wait()
        except BaseException:
            process.kill()
            raise
    if process.returncode < 0:
        said.append(f"it was ended by signal {-process.returncode}, as when memory runs out")
    return said


def fill(step: Step, summary: dict[str, Any]) -> None:
    """Fill in the result from the summary of the run."""
    for name in (
        "response_s", "worst_lag_s", "reports", "reports_per_second", "peak_memory_bytes",
        "stage_ns",
    ):  # fmt: skip
        setattr(step, name, summary[name])
    step.answers = sum(summary["answers"].values())
    step.stall = summary["longest"] or ""
    if summary["first_late"]:
        step.why = summary["first_late"]
    elif summary["interrupted"]:
        step.why = "it was interrupted"
    elif missing := [name for name, count in summary["rows_by_type"].items() if not count]:
        step.why = f"the stream has no {missing[0]}, and a rating needs all four kinds of input"


def _compare(step: Step, found: Path, reference: Digests) -> None:
    """Compare the digests of every copy with the originals', for the minutes of the run."""
    minutes = slice(step.from_minute, step.to_minute)
    digests = read_digests(found, step.expressways, step.to_minute)[:, minutes]
    wrong, first = differences(digests, reference[:, minutes], first_minute=step.from_minute)
    step.digests = {
        "compared": int(digests.shape[0] * digests.shape[1] * digests.shape[2]),
        "different": wrong,
        "first": [difference.sentence() for difference in first],
    }
    if wrong:
        step.why = f"{wrong:,} digests are not the originals'; {step.digests['first'][0]}"
