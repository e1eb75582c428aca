"""`xstream linearroad compare`: finds the largest L of each system and records every probe."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from linearroad.files import remove_temporaries
from linearroad.generation.manifest import write_json
from linearroad.output.sink import TYPES
from linearroad.output.summary import machine
from linearroad.peers.cuts import Cut, Cuts
from linearroad.peers.probe import Probe, References, Say, run_probe
from linearroad.peers.search import largest
from linearroad.peers.system import System
from linearroad.rating.originals import digest_of_written, make_validated, validated
from linearroad.rating.steps import l_text
from xstream.errors import InputError

__all__ = ["CompareOptions", "Comparison", "Result", "compare"]


@dataclass(frozen=True)
class CompareOptions:
    """The options of a comparison; see `xstream linearroad compare --help`."""

    base: Path
    out: Path
    systems: tuple[System, ...]
    minutes: int = 10
    from_minute: int | None = None
    first: float | None = None
    last: float = 1000.0
    speed: float = 1.0
    validation: bool = True


@dataclass
class Result:
    """What was found out about one system."""

    system: System
    #: Why it could not take part; empty if it did.
    missing: str = ""
    probes: list[Probe] = field(default_factory=list)
    rated: float = 0.0
    #: The validator's verdict on the right answers to the traffic of this L.
    verdict: str | None = None

    @property
    def best(self) -> Probe | None:
        """The probe of the largest L."""
        found = (probe for probe in self.probes if probe.passed and probe.rated == self.rated)
        return next(found, None)

    @property
    def leaves_out(self) -> str:
        """The kinds of answers that it does not give, in words."""
        return ", ".join(TYPES[kind] for kind in self.system.leaves_out) or "nothing"

    def as_dict(self) -> dict[str, Any]:
        """For `comparison.json`."""
        return {
            "name": self.system.name,
            "title": self.system.title,
            "wire": self.system.wire,
            "missing": self.missing,
            "leaves_out": [TYPES[kind] for kind in self.system.leaves_out],
            "l": self.rated,
            "validated": self.verdict,
            "probes": [probe.as_dict() for probe in self.probes],
        }


@dataclass
class Comparison:
    """The contents of `comparison.json`."""

    options: CompareOptions
    cuts: Cuts
    results: list[Result] = field(default_factory=list)
    interrupted: bool = False

    def sentence(self) -> str:
        """The outcome in one sentence."""
        found = [result for result in self.results if not result.missing]
        told = "; ".join(
            f"{result.system.name} {l_text(result.rated) if result.rated else 'no L'}"
            for result in sorted(found, key=lambda each: -each.rated)
        )
        first = "interrupted: " if self.interrupted else ""
        return f"{first}largest L by probes of {self.options.minutes} minutes: {told or 'none'}"

    def as_dict(self) -> dict[str, Any]:
        """For `comparison.json` and the page."""
        return {
            "sentence": self.sentence(),
            "interrupted": self.interrupted,
            "minutes": self.options.minutes,
            "from_minute": self.cuts.from_minute,
            "speed": self.options.speed,
            "base": {"expressways": self.cuts.expressways, "vehicles": self.cuts.vehicles},
            "history_is_shared": True,
            "machine": machine(),
            "version": metadata.version("xstream"),
            "systems": [result.as_dict() for result in self.results],
        }

    def write(self) -> Path:
        """Write `comparison.json` and the page; returns the path of the page."""
        from linearroad.peers.page import page_data, write_page

        known = self.as_dict()
        write_json(self.options.out / "comparison.json", {"comparison": known,
                                                          "page": page_data(known)})  # fmt: skip
        page = self.options.out / "comparison.html"
        write_page(page, known)
        return page


def compare(options: CompareOptions, say: Say) -> Comparison:
    """Find the largest L of every system; results are saved after every probe."""
    cuts = Cuts(options.base, options.out / "cuts", options.minutes, options.from_minute)
    comparison = Comparison(options, cuts)
    options.out.mkdir(parents=True, exist_ok=True)
    remove_temporaries(options.out)
    references = References(cuts, options.out / "reference", say)
    try:
        for system in options.systems:
            result = Result(system, system.missing())
            comparison.results.append(result)
            if result.missing:
                say(f"{system.name} is left out: {result.missing}")
                continue
            _rate(comparison, result, references, say)
        if options.validation:
            _validate(comparison, references, say)
    except KeyboardInterrupt:
        comparison.interrupted = True
    return comparison


def _rate(comparison: Comparison, result: Result, references: References, say: Say) -> None:
    """Search for the largest L of a system."""
    options, cuts, system = comparison.options, comparison.cuts, result.system

    def probe(rated: float) -> bool:
        say(f"{system.name}: L = {l_text(rated)}")
        out = options.out / system.name / f"l-{rated:g}"
        found = run_probe(system, rated, cuts, references, out, say, options.speed)
        result.probes.append(found)
        if found.passed:
            result.rated = max(result.rated, rated)
        say(found.line())
        comparison.write()
        return found.passed

    first = system.first if options.first is None else options.first
    result.rated = largest(probe, cuts.rounded, first, cuts.rounded(options.last))
    comparison.write()


def _validate(comparison: Comparison, references: References, say: Say) -> None:
    """Let Spark check the answers that those of the systems were compared with."""
    verdicts: dict[str, str | None] = {}
    for result in comparison.results:
        if not result.rated:
            continue
        cut = comparison.cuts.of(result.rated)
        if cut.name not in verdicts:
            say(f"validating the answers to {cut.name}")
            verdicts[cut.name] = _verdict(comparison, cut, references, say)
            say(f"  {verdicts[cut.name]}")
        result.verdict = verdicts[cut.name]


def _verdict(comparison: Comparison, cut: Cut, references: References, say: Say) -> str | None:
    folder = comparison.options.out / "validated" / cut.name
    manifest = {"totals": {"rows": cut.rows}}
    if validated(folder, manifest) is None:
        make_validated(cut.path, folder, 2, say, comparison.cuts.base)
    written = digest_of_written(folder / "output.parquet", comparison.cuts.minutes)
    if not np.array_equal(written, references.of(cut)):
        raise InputError(f"the answers in {folder} are not those that systems were compared with")
    return validated(folder, manifest)
