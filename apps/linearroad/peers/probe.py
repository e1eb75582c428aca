"""One probe: a system is started, driven with the traffic of an L, judged and stopped."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from linearroad.output.digests import Digests, differences, read_digests
from linearroad.peers.cuts import Cut, Cuts
from linearroad.peers.process import Running, StartError, running
from linearroad.peers.system import System, Task
from linearroad.rating.steps import call, l_text
from xstream.errors import InputError

__all__ = ["Probe", "References", "run_probe"]

START_S = 600.0  # a system loads its history before it listens
Say = Callable[[str], None]


@dataclass
class Probe:
    """The result of a probe, as in `comparison.json`."""

    system: str
    rated: float
    minutes: int
    #: Whether it is a short one, which only finds out where to begin.
    screening: bool = False
    passed: bool = False
    why: str = ""
    #: Response times by kind of answer, as in the summary of `drive`.
    response_s: dict[str, dict[str, float]] = field(default_factory=dict)
    rows: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    #: Digests by copy, minute and kind that were compared with the right ones; different ones.
    compared: int = 0
    different: int = 0
    start_s: float = 0.0
    #: CPU seconds of the system until it listened, and from then on; of the driver.
    start_cpu_s: float = 0.0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_memory_bytes: int = 0

    @property
    def worst_s(self) -> float:
        """The longest response time of any answer."""
        return max((each["worst"] for each in self.response_s.values()), default=0.0)

    def line(self) -> str:
        """The result in one line."""
        what = f"{self.system}: L = {l_text(self.rated)}, {self.minutes} minutes"
        if not self.passed:
            return f"{what}: did not pass: {self.why}"
        busy = self.cpu_s / self.wall_s if self.wall_s else 0.0
        return (
            f"{what}: passed, worst {self.worst_s:.3f} s, {busy:.2f} processors, "
            f"{self.peak_memory_bytes / 2**20:,.0f} MiB"
        )

    def as_dict(self) -> dict[str, Any]:
        """For `comparison.json`."""
        return asdict(self) | {"worst_s": self.worst_s}

    @classmethod
    def of(cls, known: dict[str, Any]) -> Self:
        """A probe as it was saved."""
        return cls(**{each.name: known[each.name] for each in fields(cls)})


class References:
    """The digests of the right answers to each cut, as `run` gives them."""

    def __init__(self, cuts: Cuts, folder: Path, say: Say) -> None:
        self._cuts, self._folder, self._say = cuts, folder, say
        self._known: dict[str, Digests] = {}

    def of(self, cut: Cut) -> Digests:
        """The digests by minute and kind, of all expressways together."""
        if cut.name not in self._known:
            out = self._folder / cut.name
            (out / "summary.json").unlink(missing_ok=True)
            said = call([
                *("linearroad", "run", "--input", str(cut.path), "--history", str(self._cuts.base)),
                *("--answers", "digest", "--out", str(out)),
            ], self._say)  # fmt: skip
            if not (out / "summary.json").exists():
                told = said[-1].removeprefix("xstream: ") if said else "it did not run"
                raise InputError(told)
            digests = read_digests(out / "digests.parquet", cut.expressways, self._cuts.minutes)
            self._known[cut.name] = digests.sum(axis=0, dtype=np.uint64)
        return self._known[cut.name]


def run_probe(
    system: System, rated: float, cuts: Cuts, references: References, out: Path, say: Say,
    speed: float = 1.0,
) -> Probe:  # fmt: skip
    """Drive a system with the traffic of an L; the program and its data are gone afterwards."""
    probe = Probe(system.name, rated, cuts.minutes)
    cut = cuts.of(rated)
    right = references.of(cut)
    copies = cut.copies
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="linearroad-", ignore_cleanup_errors=True) as folder:
        task = Task(
            cuts.base.resolve(), copies * cut.expressways, cuts.expressways, cuts.vehicles,
            Path(folder),
        )  # fmt: skip
        try:
            with running(system.program(task), out / "system.log") as program:
                program.wait_until_it_listens(START_S)
                say(f"  {system.name} listens after {program.start_s:.1f} s")
                probe.start_s, probe.start_cpu_s = program.start_s, program.cpu_s
                _drive(probe, program, system, cut, copies, out, say, speed)
                probe.cpu_s = program.cpu_s - probe.start_cpu_s
                probe.peak_memory_bytes = program.peak_memory_bytes
        except StartError as error:
            probe.why = f"{error}; see {out / 'system.log'}"
    if not probe.why:
        _compare(probe, system, out / "digests.parquet", copies, right)
    probe.passed = not probe.why
    return probe


def _drive(
    probe: Probe, program: Running, system: System, cut: Cut, copies: int, out: Path, say: Say,
    speed: float,
) -> None:  # fmt: skip
    summary = out / "summary.json"
    said = call([
        *("linearroad", "drive", "--input", str(cut.path), "--to", program.address),
        *("--wire", system.wire, "--marks" if system.marks else "--no-marks"),
        *(("--expressways", str(copies * cut.expressways)) if copies > 1 else ()),
        *("--answers", "digest", "--out", str(out), "--stop-when-late", "--speed", f"{speed:g}"),
    ], say)  # fmt: skip
    if not summary.exists():
        probe.why = (
            said[-1].removeprefix("xstream: ") if said else "the driver ended without a word"
        )
        return
    found = json.loads(summary.read_text())
    probe.response_s, probe.rows = found["response_s"], found["rows"]
    probe.answers, probe.wall_s = found["answers"], found["wall_seconds"]
    probe.why = found["first_late"] or found["ended"] or ""
    if not probe.why and found["interrupted"]:
        probe.why = "it was interrupted"


def _compare(probe: Probe, system: System, path: Path, copies: int, right: Digests) -> None:
    """Compare the digests of every copy with the right ones, except of kinds left out."""
    digests = read_digests(path, copies, probe.minutes)
    expected = right[np.newaxis].copy()
    for kind in system.leaves_out:
        digests[:, :, kind], expected[:, :, kind] = 0, 0
    probe.compared = int(np.prod(digests.shape[:3]))
    probe.different, first = differences(digests, expected)
    if probe.different:
        what = first[0].sentence()
        probe.why = f"{probe.different:,} of {probe.compared:,} digests are not right: {what}"
