"""`xstream linearroad rate`: finds the largest L that passes, and records every step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from linearroad.files import remove_temporaries
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import (
    Entry,
    rating_l,
    read_json,
    read_manifest,
    write_json,
)
from linearroad.output.digests import Digests
from linearroad.output.summary import machine
from linearroad.rating.box import Box, Runs
from linearroad.rating.memory import Account, account_of
from linearroad.rating.options import RatingOptions
from linearroad.rating.originals import (
    Originals,
    check_digest,
    kept_originals,
    validated,
)
from linearroad.rating.search import Range, largest
from linearroad.rating.steps import Say, Step, l_text
from linearroad.run.memory import too_much
from linearroad.storage import is_remote, make_folder, upload
from xstream.console.memory import available_bytes
from xstream.console.timeline import Row
from xstream.errors import InputError

__all__ = ["LEAST_ORIGINALS", "Rating", "RatingOptions", "explain", "history_bytes", "rate"]

LEAST_ORIGINALS = 10  # generated expressways that a rating needs
FULL_MINUTES = 180
FIRST = 250
TRIES = 3  # full streams, each with a smaller L
QUICK_KNOWN_TO, KNOWN_TO = 0.1, 0.05  # precision, as a share of L
#: The share of the free memory that a run may use.
MOST_MEMORY = 0.97


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
    machine: Entry = field(default_factory=machine)
    slots: int = 1  # runs among which the expressways of a step are divided
    #: The steps of the rating that is resumed, by kind and number of expressways.
    earlier: dict[tuple[str, int], Step] = field(default_factory=dict)
    #: Seconds and bytes of the steps of a strict rating.
    costs: dict[str, float] = field(default_factory=dict)

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
        speed, strict = self.options.speed, self.options.strict
        if not self.expressways:
            what = "no L has passed"
        else:
            pace = "" if speed == 1 else f" at {speed:g} times the pace"
            pace = f" by the strict protocol{',' * bool(pace)}{pace}" if strict else pace
            right = "right and in time"
            if self.verdict is None:  # copies were compared, but the originals were not validated
                right = "in time, the copies' equal to the originals', which were not validated"
            what = f"L = {l_text(self.expressways * self.share)}{pace}: every answer {right}"
        if self.interrupted:
            return f"interrupted: {what} so far"
        minutes = int(self.manifest["parameters"]["minutes"])
        first = int(self.manifest["parameters"].get("from_minute", 0))
        if strict and minutes + first == FULL_MINUTES and first:
            return f"quick, by minutes {first} to {FULL_MINUTES} alone: {what}"
        if strict and minutes >= FULL_MINUTES:
            return what
        if strict:
            return f"a trial of {minutes} minutes; a rating takes {FULL_MINUTES}: {what}"
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
        options, totals = self.options, self.manifest["totals"]
        lines: tuple[tuple[str, float, float], ...] = ()
        if not options.strict:
            each = max((self.expressways or self.originals) // self.slots, self.originals)
            lines = account_of(options.base, each, history_bytes(options.base)).lines
        return {
            "sentence": self.sentence(),
            "passed": bool(self.expressways),
            "expressways": self.expressways,
            "share": self.share,
            "speed": options.speed,
            "quick": options.quick,
            "confirmed": self.confirmed,
            "base": {
                "expressways": self.originals,
                "minutes": self.manifest["parameters"]["minutes"],
                **{name: totals[name] for name in ("reports", "vehicles", "queries")},
            },
            "strict": options.strict,
            "costs": self.costs,
            "history_is_shared": not options.strict,
            "validated": self.verdict,
            "threads": options.threads,
            "master": options.master,
            "runs_at_once": self.slots,
            "options": options.identity,
            "machine": self.machine,
            "version": metadata.version("xstream"),
            "memory": [list(line) for line in lines],
            "steps": [step.as_dict() for step in self.steps],
        }

    def write(self) -> Path:
        """Write `rating.json` and the page; returns the path of the page."""
        from linearroad.rating.page import page_data, write_page

        known = self.as_dict()
        stored = {"rating": known, "page": page_data(known, self.timelines)}
        write_json(self.options.out / "rating.json", stored)
        page = self.options.out / "rating.html"
        if not is_remote(page):
            write_page(page, known, self.timelines)
            return page
        with TemporaryDirectory() as folder:
            write_page(Path(folder, page.name), known, self.timelines)
            upload(Path(folder, page.name), page)
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
    return account, most_copies(base, originals, available_bytes()) * generated


def most_copies(base: Path, originals: int, free: float) -> int:
    """The copies of the originals that fit into memory."""
    past = history_bytes(base)
    one, two = (account_of(base, k * originals, past).total for k in (1, 2))
    return max(int((MOST_MEMORY * free - one) / (two - one) + 1), 0)


def rate(options: RatingOptions, say: Say) -> Rating:
    """Find the largest L that passes and confirm it; results are saved after every step."""
    rating = Rating(options, checked_base(options.base))
    if options.resume:
        rating.earlier = _earlier_steps(rating)
    try:
        with _runs(options) as runs:
            _rate(rating, runs, say)
    except KeyboardInterrupt:
        if not rating.steps:
            raise
        rating.interrupted = True
        failed = [s.expressways for s in rating.steps if s.kind == "full" and not s.passed]
        passed = (s.expressways for s in rating.steps if s.passed)
        rating.expressways = max((n for n in passed if n < min(failed, default=n + 1)), default=0)
    return rating


@contextmanager
def _runs(options: RatingOptions) -> Iterator[Runs]:
    """This machine, or a cluster."""
    if options.master is None:
        yield Box(options)
        return
    from linearroad.rating.cluster import on_cluster

    with on_cluster(options) as cluster:
        yield cluster


def _rate(rating: Rating, runs: Runs, say: Say) -> None:
    options = rating.options
    rating.machine, rating.slots = runs.machine(), runs.slots
    tried = _range(options, runs, rating.originals, rating_l(rating.manifest))
    rating.verdict = validated(options.originals, rating.manifest)
    if rating.verdict is None and options.validated is not None:
        raise InputError(f"{options.originals} was not validated: it has no validation.json")
    make_folder(options.out)
    remove_temporaries(options.out)
    originals = (
        kept_originals(options.out / "reference", rating.manifest) if options.resume else None
    )
    if originals is None:
        say(f"running the {rating.generated} originals")
        originals = runs.prepare(rating.manifest, say)
    _validate(rating, runs, originals.digests, say)
    rating.expressways = largest(
        lambda expressways: _step(rating, runs, originals, expressways, "probe", say), tried
    )
    rating.write()
    if not options.quick:
        _confirm(rating, runs, originals, tried, say)


def _earlier_steps(rating: Rating) -> dict[tuple[str, int], Step]:
    """The steps of an interrupted rating, without those that failed before they ran."""
    path = rating.options.out / "rating.json"
    if not path.is_file():
        return {}
    known = read_json(path)["rating"]
    totals = rating.manifest["totals"]
    if any(totals.get(name, count) != count for name, count in known["base"].items()):
        raise InputError(f"{path} is a rating of other traffic than {rating.options.base}")
    for name, value in rating.options.identity.items():
        if known["options"][name] != value:
            raise InputError(
                f"{path} is a rating with {name} {known['options'][name]}, not {value}: begin "
                "again without --resume"
            )
    steps = (Step(**each) for each in known["steps"])
    return {(step.kind, step.expressways): step for step in steps if step.wall_s > 0}


def _range(options: RatingOptions, runs: Runs, originals: int, generated: float) -> Range:
    """The numbers of files to try; `generated` is the L of the base, which may end in a half."""
    free = runs.free_bytes()
    copies = most_copies(options.base, originals, free)
    if options.last is None and not copies:
        account, _ = explain(options.base, generated)
        usable = MOST_MEMORY * free
        raise too_much(originals, account.total, usable, "of those that are free may be used")
    last = options.last if options.last is not None else copies * runs.slots * generated
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
    # All runs of a step have equally many copies, unless there are fewer copies than slots.
    step = min(runs.slots * originals, most_files)
    return Range(step, first_files, most_files // step * step, known_to)


def _validate(rating: Rating, runs: Runs, digests: Digests, say: Say) -> None:
    """Make sure that the originals' answers are right, by an earlier or a new validation."""
    options = rating.options
    if rating.verdict is None and not options.quick:
        say("validating the originals' answers")
        runs.make_validated(say)
        rating.verdict = validated(options.originals, rating.manifest)
    if rating.verdict is not None:
        check_digest(options.originals, runs.digest_of_written(digests.shape[1]), digests)
        say(f"originals: {rating.verdict}")


def _step(
    rating: Rating, runs: Runs, originals: Originals, expressways: int, kind: str, say: Say
) -> bool:
    """Run a step and save its result; returns whether it passed."""
    minutes = int(rating.manifest["parameters"]["minutes"])
    begin = originals.state_minute if kind == "probe" else 0
    place = rating.options.out / f"{kind}-{expressways}"
    step = rating.earlier.pop((kind, expressways), None)
    if step is not None:
        rows = runs.timeline(place)
    else:
        step = Step(expressways, kind, rating.options.speed, begin, minutes, share=rating.share)
        base = rating.options.base
        each = max(expressways // rating.slots, rating.originals)
        step.needed_bytes = int(account_of(base, each, history_bytes(base)).total)
        say(f"L = {l_text(step.rated)}: minutes {begin} to {minutes} at speed {step.speed:g}")
        rows = runs.step(step, originals, place, say)
    rating.steps.append(step)
    rating.timelines.append(rows)
    say(step.line())
    if step.passed and step.expressways > rating.expressways and kind == "probe":
        rating.expressways = step.expressways
    rating.write()
    return step.passed


def _confirm(rating: Rating, runs: Runs, originals: Originals, tried: Range, say: Say) -> None:
    """Run a full stream with the L that was found, or with a smaller L if that fails."""
    rating.confirmed = False
    wanted = rating.expressways
    for _ in range(TRIES):
        if not wanted:
            break
        if _step(rating, runs, originals, wanted, "full", say):
            rating.expressways, rating.confirmed = wanted, True
            return
        wanted = tried.rounded(0.9 * wanted) if wanted > tried.step else 0
    rating.expressways = 0  # probes passed, but no full stream did
