"""The strict rating: K = L, every expressway generated apart, and every answer validated.

Nothing is shared: each expressway has its own traffic and its own history, its rows are decoded for
it alone, the answers are written to a file as the paper asks, and Spark computes every one of them.
Finished steps are kept, so the same command continues an interrupted rating.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linearroad.files import checksum
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import Entry, rating_l, read_json, read_manifest, write_json
from linearroad.rating.job import FULL_MINUTES, Rating, RatingOptions, checked_base
from linearroad.rating.steps import Say, Step, call, complete, l_text
from xstream.console.timeline import Row, read_timeline
from xstream.errors import InputError

__all__ = ["rate_strictly"]

#: What `--quick` generates: the last minutes of the three hours, with all of their traffic.
CUT_MINUTES = 10
SEED = 1


@dataclass
class Finished:
    """What is known of finished steps, in `finished.json`: of the same base, speed and threads."""

    path: Path
    of: Entry
    step: Entry | None = None
    costs: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, of: Entry) -> Finished:
        """The record of an earlier call, or an empty one."""
        known = read_json(path) if path.is_file() else {}
        if known.get("of") != of:
            return cls(path, of)
        return cls(path, of, known["step"], dict(known["costs"]))

    def write(self) -> None:
        """Keep the record for the next call."""
        write_json(self.path, {"of": self.of, "step": self.step, "costs": self.costs})

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds of a step to its costs."""
        began = time.monotonic()
        yield
        self.costs[name] = round(time.monotonic() - began, 1)


def rate_strictly(options: RatingOptions, say: Say) -> Rating:
    """Generate what is missing, run it at its pace, and validate every answer."""
    began = time.monotonic()
    generated_now = _generate(options, say)
    manifest = checked_base(options.base)
    if options.expressways not in (None, rating_l(manifest)):
        raise InputError(
            f"{options.base} has {l_text(rating_l(manifest))} expressways, not "
            f"{options.expressways:g}: choose another --base"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    finished = Finished.read(options.out / "finished.json", _identity(options))
    if generated_now:
        finished.costs["generation_s"] = round(time.monotonic() - began, 1)
    rating = Rating(options, manifest, costs=finished.costs)
    try:
        _run_and_validate(rating, finished, say)
    except KeyboardInterrupt:
        rating.interrupted = True
    return rating


def _identity(options: RatingOptions) -> Entry:
    """What finished steps depend on."""
    manifest = checksum(Layout(options.base).manifest)
    return {"base": manifest, "speed": options.speed, "threads": options.threads}


def _generate(options: RatingOptions, say: Say) -> bool:
    """Generate the traffic and history that are missing; whether anything was."""
    base, wanted = options.base, options.expressways
    if wanted is None:
        read_manifest(base)  # says what to do if it is missing or not complete
        return False
    cut = ("--from-minute", str(FULL_MINUTES - CUT_MINUTES)) if options.quick else ()
    minutes = CUT_MINUTES if options.quick else FULL_MINUTES
    if _ready(base):
        _check_minutes(options, minutes)
        return False
    say(f"generating {l_text(wanted)} expressways of {minutes} minutes, each with its history")
    command = ["linearroad", "generate", "--expressways", f"{wanted:g}", "--seed", str(SEED)]
    options_of_base = ["--minutes", str(minutes), *cut, "--history", "--out", str(base)]
    said = call([*command, *options_of_base], say)
    if not _ready(base):
        raise InputError(
            said[-1].removeprefix("xstream: ") if said else f"{base} was not generated"
        )
    return True


def _ready(base: Path) -> bool:
    """Whether the base is complete and has its history."""
    path = Layout(base).manifest
    if not path.is_file():
        return False
    manifest = read_json(path)
    return manifest.get("complete") is True and bool(manifest.get("store"))


def _check_minutes(options: RatingOptions, minutes: int) -> None:
    found = int(read_manifest(options.base)["parameters"]["minutes"])
    if found != minutes:
        quick = "" if options.quick else "out"
        raise InputError(
            f"{options.base} has {found} minutes, and a rating with{quick} --quick takes "
            f"{minutes}: choose another --base, or leave out --expressways to rate it as it is"
        )


def _run_and_validate(rating: Rating, finished: Finished, say: Say) -> None:
    """Run the stream and validate its answers, unless that is done, and fill in the rating."""
    place = rating.options.out / "run"
    step, rows = _run(rating, finished, place, say)
    rating.steps.append(step)
    rating.timelines.append(rows)
    rating.write()
    if not step.passed:
        return
    if not _is_judged(place):
        say("validating every answer with Spark")
        _validate(rating.options.base, place, finished, say)
    rating.verdict, right = _judgement(place, rating.manifest)
    if right:
        rating.expressways = rating.originals
        rating.confirmed = True
    else:
        step.passed, step.why = False, rating.verdict
    say(rating.verdict)
    rating.write()


def _run(rating: Rating, finished: Finished, place: Path, say: Say) -> tuple[Step, list[Row]]:
    """The step of a finished run, or of a new one, and its timeline."""
    options, manifest = rating.options, rating.manifest
    if finished.step is not None and (place / "output.csv").is_file():
        say(f"the run is finished: {place}")
        return Step(**finished.step), read_timeline(place / "timeline.csv")
    minutes = int(manifest["parameters"]["minutes"])
    step = Step(rating.originals, "full", options.speed, 0, minutes, share=rating.share)
    say(f"L = {l_text(step.rated)}: {minutes} minutes at speed {options.speed:g}")
    command = [
        *("linearroad", "run", "--input", str(options.base), "--history", str(options.base)),
        *("--threads", str(options.threads), "--speed", f"{options.speed:g}"),
        *("--out", str(place), "--stop-when-late"),
    ]
    rows = complete(step, command, place, say)
    if not (place / "summary.json").exists():  # it was refused, which says nothing about L
        raise InputError(step.why)
    step.passed = not step.why
    say(step.line())
    if step.passed:
        finished.step = step.as_dict()
        finished.costs |= {"run_s": step.wall_s, "answer_bytes": _bytes(place / "output.csv")}
        finished.write()
    return step, rows


def _bytes(path: Path) -> int:
    return path.stat().st_size


def _is_judged(place: Path) -> bool:
    """Whether the answers were validated; a run removes the verdict on an earlier one."""
    return (place / "validation.json").is_file()


def _validate(base: Path, place: Path, finished: Finished, say: Say) -> None:
    with finished.timed("validation_s"):
        command = ["linearroad", "validate", "--input", str(base), "--history", str(base)]
        said = call([*command, "--output", str(place)], say)
    if not _is_judged(place):
        raise InputError(said[-1].removeprefix("xstream: ") if said else "validation did not end")
    finished.write()


def _judgement(place: Path, manifest: Entry) -> tuple[str, bool]:
    """What `validate` says of all answers, and whether they are right and in time."""
    found: dict[str, Any] = read_json(place / "validation.json")
    rows = manifest["totals"]["rows"]
    if found.get("rows") != rows or found.get("covered"):
        raise InputError(
            f"{place / 'validation.json'} is about other rows than the {rows:,} of the base"
        )
    return str(found.get("verdict")), found.get("passed") is True
