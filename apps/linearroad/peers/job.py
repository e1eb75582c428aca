"""`xstream linearroad compare`: finds the largest L of each system and records every probe."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from linearroad.files import remove_temporaries
from linearroad.generation.manifest import read_json, write_json
from linearroad.output.sink import TYPES
from linearroad.output.summary import machine
from linearroad.peers.cuts import Cut, Cuts
from linearroad.peers.probe import Probe, References, Say, run_probe
from linearroad.peers.registry import SYSTEMS
from linearroad.peers.search import confirmed, largest
from linearroad.peers.system import System
from linearroad.rating.originals import digest_of_written, make_validated, validated
from linearroad.rating.steps import l_text
from xstream.console.folder import locked_folder
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
    #: Minutes of the short probes that find the first L for whole probes; 0: there are none.
    screen_minutes: int = 2
    resume: bool = False


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
    #: The probe of the largest L.
    best: Probe | None = None

    def add(self, probe: Probe) -> None:
        """Record a probe; a short one does not decide about L."""
        self.probes.append(probe)
        if probe.passed and not probe.screening and probe.rated > self.rated:
            self.rated, self.best = probe.rated, probe

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

    @property
    def base(self) -> dict[str, int]:
        """What tells the traffic from other traffic."""
        totals = self.cuts.manifest["totals"]
        counts = {name: int(totals[name]) for name in ("rows", "vehicles")}
        return {"expressways": self.cuts.expressways, **counts}

    def as_dict(self) -> dict[str, Any]:
        """For `comparison.json` and the page."""
        return {
            "sentence": self.sentence(),
            "interrupted": self.interrupted,
            "minutes": self.options.minutes,
            "from_minute": self.cuts.from_minute,
            "screen_minutes": self.options.screen_minutes,
            "speed": self.options.speed,
            "base": self.base,
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
    lock = locked_folder(options.out)
    try:
        return _compare(options, say)
    finally:
        os.close(lock)


def _compare(options: CompareOptions, say: Say) -> Comparison:
    cuts = Cuts(options.base, options.out / "cuts", options.minutes, options.from_minute)
    comparison = Comparison(options, cuts)
    kept = _earlier(comparison) if options.resume else {}
    remove_temporaries(options.out)
    references = References(cuts, options.out / "reference", say)
    chosen = [system.name for system in options.systems]
    for name, result in kept.items():
        if name not in chosen:
            comparison.results.append(result)
    try:
        for system in options.systems:
            result = Result(system, system.missing())
            comparison.results.append(result)
            if result.missing:
                say(f"{system.name} is left out: {result.missing}")
                continue
            for probe in kept[system.name].probes if system.name in kept else ():
                result.add(probe)
            _Search(comparison, result, references, say).run()
        if options.validation:
            _validate(comparison, references, say)
    except KeyboardInterrupt:
        comparison.interrupted = True
    return comparison


def _earlier(comparison: Comparison) -> dict[str, Result]:
    """The results of an interrupted comparison by system, without probes that did not run."""
    path = comparison.options.out / "comparison.json"
    if not path.is_file():
        return {}
    try:
        known = read_json(path)["comparison"]
        _check_alike(path, known, comparison.as_dict())
        return {
            found["name"]: _result(found) for found in known["systems"] if found["name"] in SYSTEMS
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} was not written by this version of compare: begin again without --resume"
        ) from error


def _check_alike(path: Path, known: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise InputError unless a comparison had the same traffic, probes and machine."""
    for name in ("base", "minutes", "from_minute", "screen_minutes", "speed"):
        if known.get(name) != now[name]:
            raise InputError(
                f"{path} is a comparison with {name} {known.get(name)}, not {now[name]}: begin "
                "again without --resume"
            )
    for name in ("cpu", "cores"):
        if known["machine"].get(name) != now["machine"][name]:
            raise InputError(
                f"{path} was measured on another machine ({known['machine'].get('cpu')}): begin "
                "again without --resume"
            )


def _result(found: dict[str, Any]) -> Result:
    """A result as it was saved."""
    result = Result(SYSTEMS[found["name"]], found["missing"], verdict=found["validated"])
    for known in found["probes"]:
        if known["wall_s"] > 0:
            result.add(Probe.of(known))
    return result


class _Search:
    """The search for the largest L of one system."""

    def __init__(
        self, comparison: Comparison, result: Result, references: References, say: Say
    ) -> None:
        self._comparison, self._result, self._references = comparison, result, references
        self._earlier = {(probe.screening, probe.rated): probe for probe in result.probes}
        self._say = say

    def run(self) -> None:
        """Find the first L by short probes, if there are any, and the largest by whole ones."""
        options, cuts, result = self._comparison.options, self._comparison.cuts, self._result
        first = result.system.first if options.first is None else options.first
        last = cuts.rounded(options.last)
        whole = self._prober(cuts, self._references, screening=False)
        minutes = options.screen_minutes
        if not minutes or minutes >= options.minutes:
            largest(whole, cuts.rounded, first, last)
        else:
            end = cuts.from_minute + cuts.minutes
            short = Cuts(options.base, options.out / "cuts", minutes, end - minutes)
            known = References(short, options.out / "reference", self._say)
            screen = self._prober(short, known, screening=True)
            confirmed(whole, cuts.rounded, largest(screen, cuts.rounded, first, last))
        self._comparison.write()

    def _prober(
        self, cuts: Cuts, references: References, screening: bool
    ) -> Callable[[float], bool]:
        """A function that runs a probe and records its result."""

        def probe(rated: float) -> bool:
            system, options = self._result.system, self._comparison.options
            if (screening, rated) in self._earlier:
                return self._earlier[screening, rated].passed
            self._say(f"{system.name}: L = {l_text(rated)}, {cuts.minutes} minutes")
            name = f"l-{rated:g}-screening" if screening else f"l-{rated:g}"
            out = options.out / system.name / name
            found = run_probe(system, rated, cuts, references, out, self._say, options.speed)
            found.screening = screening
            self._result.add(found)
            self._say(found.line())
            self._comparison.write()
            return found.passed

        return probe


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
