"""`xstream linearroad rate`: finds the largest L that passes, and records every step."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from linearroad.files import remove_temporaries
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import Entry, rating_l, read_manifest, write_json
from linearroad.output.summary import machine
from linearroad.rating.memory import Account, account_of
from linearroad.rating.originals import (
    Originals,
    check_written,
    make_validated,
    prepare,
    validated,
)
from linearroad.rating.search import Range, largest
from linearroad.rating.steps import Say, Setting, Step, l_text, run_step
from linearroad.run.memory import too_much
from xstream.console.memory import available_bytes
from xstream.console.timeline import Row
from xstream.errors import InputError

__all__ = ["LEAST_ORIGINALS", "Rating", "RatingOptions", "explain", "history_bytes", "rate"]

LEAST_ORIGINALS = 10  # generated expressways that a rating needs
FULL_MINUTES = 180
PROBE_MINUTES = 10
FIRST = 250
TRIES = 3  # full streams, each with a smaller L
QUICK_KNOWN_TO, KNOWN_TO = 0.1, 0.05  # precision, as a share of L
#: The share of the free memory that a run may use.
MOST_MEMORY = 0.97


@dataclass(frozen=True)
class RatingOptions:
    """The options of a rating; see `xstream linearroad rate --help`."""

    base: Path
    out: Path
    first: float | None = None
    last: float | None = None
    speed: float = 10.0
    threads: int = 2
    quick: bool = False
    validated: Path | None = None  # OUT/originals if not given


@dataclass
class Rating:
    """The contents of `rating.json`."""

    options: RatingOptions
    manifest: Entry
    steps: list[Step] = field(default_factory=list)
    timelines: list[list[Row]] = field(default_factory=list)
    verdict: str | None = None  # on the originals' answers
    expressways: int = 0
    confirmed: bool | None = None
    interrupted: bool = False

    @property
    def originals(self) -> int:
        """The number of generated expressways."""
        return int(self.manifest["parameters"]["expressways"])

    @property
    def share(self) -> float:
        """L per generated expressway: less than 1 if the last one is half."""
        return rating_l(self.manifest) / self.originals

    @property
    def generated(self) -> str:
        """The L of the generated expressways as text."""
        return l_text(rating_l(self.manifest))

    def sentence(self) -> str:
        """The rating in one sentence that says what kind of rating it is."""
        speed = self.options.speed
        if not self.expressways:
            what = "no L has passed"
        else:
            pace = "" if speed == 1 else f" at {speed:g} times the pace"
            right = "right and in time"
            if self.verdict is None:  # copies were compared, but the originals were not validated
                right = "in time, the copies' equal to the originals', which were not validated"
            what = f"L = {l_text(self.expressways * self.share)}{pace}: every answer {right}"
        if self.interrupted:
            return f"interrupted: {what} so far"
        minutes = int(self.manifest["parameters"]["minutes"])
        if self.originals < LEAST_ORIGINALS or minutes < FULL_MINUTES:
            return (
                f"a trial, not a rating ({self.generated} generated expressways of {minutes} "
                f"minutes; a rating takes {LEAST_ORIGINALS} of {FULL_MINUTES}): {what}"
            )
        if self.options.quick:
            return f"quick, by probe runs alone: {what}"
        found = self.expressways or any(step.passed for step in self.steps)
        if found and not self.confirmed:
            return f"not confirmed by a full stream: {what}"
        return what

    def as_dict(self) -> dict[str, Any]:
        """For `rating.json` and the page."""
        account = account_of(
            self.options.base, self.expressways or self.originals, history_bytes(self.options.base)
        )
        totals = self.manifest["totals"]
        return {
            "sentence": self.sentence(),
            "passed": bool(self.expressways),
            "expressways": self.expressways,
            "share": self.share,
            "speed": self.options.speed,
            "quick": self.options.quick,
            "confirmed": self.confirmed,
            "base": {
                "expressways": self.originals,
                "minutes": self.manifest["parameters"]["minutes"],
                **{name: totals[name] for name in ("reports", "vehicles", "queries")},
            },
            "history_is_shared": True,
            "validated": self.verdict,
            "threads": self.options.threads,
            "machine": machine(),
            "version": metadata.version("xstream"),
            "memory": [list(line) for line in account.lines],
            "steps": [step.as_dict() for step in self.steps],
        }

    def write(self) -> Path:
        """Write `rating.json` and the page; returns the path of the page."""
        from linearroad.rating.page import page_data, write_page

        known = self.as_dict()
        stored = {"rating": known, "page": page_data(known, self.timelines)}
        write_json(self.options.out / "rating.json", stored)
        page = self.options.out / "rating.html"
        write_page(page, known, self.timelines)
        return page


def history_bytes(base: Path) -> int:
    """The bytes of history that a run keeps in memory."""
    store = Layout(base).store(0).parent
    return sum(path.stat().st_size for path in store.rglob("*.npy"))


def checked_base(base: Path) -> Entry:
    """The manifest of traffic that is suitable for a rating; raises InputError otherwise."""
    manifest = read_manifest(base)
    if int(manifest["parameters"]["minutes"]) < 2:
        raise InputError(
            f"{base} has only one minute, and the rating saves a state before the last minutes"
        )
    if not history_bytes(base):
        raise InputError(f"{base} has no history: generate it with --history")
    return manifest


def explain(base: Path, expressways: float) -> tuple[Account, float]:
    """The estimated memory at an L, and the largest L that fits."""
    manifest = checked_base(base)
    originals, past = int(manifest["parameters"]["expressways"]), history_bytes(base)
    generated = rating_l(manifest)
    copies = round(expressways / generated)
    if expressways < generated or copies * generated != expressways:
        raise InputError(
            f"L must be a multiple of the {l_text(generated)} expressways of {base}, not "
            f"{expressways:g}"
        )
    account = account_of(base, copies * originals, past)
    one, two = (account_of(base, k * originals, past).total for k in (1, 2))
    most = int((MOST_MEMORY * available_bytes() - one) / (two - one) + 1) * generated
    return account, max(most, 0)


def rate(options: RatingOptions, say: Say) -> Rating:
    """Find the largest L that passes and confirm it; results are saved after every step."""
    rating = Rating(options, checked_base(options.base))
    tried = _range(options, rating.originals, rating_l(rating.manifest))
    folder = options.validated or options.out / "originals"
    rating.verdict = validated(folder, rating.manifest)
    if rating.verdict is None and options.validated is not None:
        raise InputError(f"{folder} was not validated: it has no validation.json")
    options.out.mkdir(parents=True, exist_ok=True)
    remove_temporaries(options.out)
    say(f"running the {rating.generated} originals")
    originals = prepare(
        options.base, rating.manifest, options.out / "reference", PROBE_MINUTES, say
    )
    _validate(rating, originals, folder, say)
    setting = Setting(options.base, options.threads, options.speed)
    try:
        rating.expressways = largest(
            lambda expressways: _step(rating, setting, originals, expressways, "probe", say), tried
        )
        rating.write()
        if not options.quick:
            _confirm(rating, setting, originals, tried, say)
    except KeyboardInterrupt:
        rating.interrupted = True
        failed = [s.expressways for s in rating.steps if s.kind == "full" and not s.passed]
        passed = (s.expressways for s in rating.steps if s.passed)
        rating.expressways = max((n for n in passed if n < min(failed, default=n + 1)), default=0)
    return rating


def _range(options: RatingOptions, originals: int, generated: float) -> Range:
    """The numbers of files to try; `generated` is the L of the base, which may end in a half."""
    account, most = explain(options.base, generated)
    if options.last is None and most < generated:
        usable = MOST_MEMORY * available_bytes()
        raise too_much(originals, account.total, usable, "of those that are free may be used")
    last = options.last if options.last is not None else most
    first = options.first if options.first is not None else min(FIRST, last)
    for name, value in (("--to", last), ("--from", first)):
        if value < generated:
            raise InputError(
                f"{name} must be at least {l_text(generated)}, the expressways of the base, not "
                f"{value:g}"
            )
    if first > last:
        raise InputError(f"--from {first:g} must not be greater than --to {last:g}")
    if not 0 < options.speed < float("inf"):
        raise InputError(f"--speed must be a positive number, not {options.speed:g}")
    known_to = QUICK_KNOWN_TO if options.quick else KNOWN_TO
    most_files, first_files = (int(rated // generated) * originals for rated in (last, first))
    return Range(originals, first_files, most_files, known_to)


def _validate(rating: Rating, originals: Originals, folder: Path, say: Say) -> None:
    """Make sure that the originals' answers are right, by an earlier or a new validation."""
    options = rating.options
    if rating.verdict is None and not options.quick:
        say("validating the originals' answers")
        make_validated(options.base, folder, options.threads, say)
        rating.verdict = validated(folder, rating.manifest)
    if rating.verdict is not None:
        check_written(folder, originals.digests)
        say(f"originals: {rating.verdict}")


def _step(
    rating: Rating, setting: Setting, originals: Originals, expressways: int, kind: str, say: Say
) -> bool:
    """Run a step and save its result; returns whether it passed."""
    minutes = int(rating.manifest["parameters"]["minutes"])
    begin = originals.state_minute if kind == "probe" else 0
    step = Step(expressways, kind, setting.speed, begin, minutes, share=rating.share)
    needed = account_of(setting.base, expressways, history_bytes(setting.base)).total
    step.needed_bytes = int(needed)
    say(f"L = {l_text(step.rated)}: minutes {begin} to {minutes} at speed {setting.speed:g}")
    state = originals.state if kind == "probe" else None
    place = rating.options.out / f"{kind}-{expressways}"
    rows = run_step(step, setting, place, originals.digests, state, say)
    rating.steps.append(step)
    rating.timelines.append(rows)
    say(step.line())
    if step.passed and step.expressways > rating.expressways and kind == "probe":
        rating.expressways = step.expressways
    rating.write()
    return step.passed


def _confirm(
    rating: Rating, setting: Setting, originals: Originals, tried: Range, say: Say
) -> None:
    """Run a full stream with the L that was found, or with a smaller L if that fails."""
    rating.confirmed = False
    wanted = rating.expressways
    for _ in range(TRIES):
        if not wanted:
            break
        if _step(rating, setting, originals, wanted, "full", say):
            rating.expressways, rating.confirmed = wanted, True
            return
        wanted = tried.rounded(0.9 * wanted) if wanted > tried.step else 0
    rating.expressways = 0  # probes passed, but no full stream did
