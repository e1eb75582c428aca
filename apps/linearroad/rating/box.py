"""The runs of a rating on this machine, each in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from linearroad.generation.manifest import Entry
from linearroad.output.digests import Digests
from linearroad.output.summary import machine
from linearroad.rating.options import RatingOptions
from linearroad.rating.originals import Originals, digest_of_written, make_validated, prepare
from linearroad.rating.steps import Say, Setting, Step, run_step
from xstream.console.memory import available_bytes
from xstream.console.timeline import Row, read_timeline

__all__ = ["Box", "Runs", "timeline_of"]

PROBE_MINUTES = 10


class Runs(Protocol):
    """Where the runs of a rating take place: on this machine, or on a cluster."""

    #: The runs among which the expressways of a step are divided.
    slots: int

    def free_bytes(self) -> int:
        """The memory that each of the runs can take."""

    def machine(self) -> Entry:
        """For `rating.json`."""

    def prepare(self, manifest: Entry, say: Say) -> Originals:
        """Run the originals, and save their digests and their state."""

    def make_validated(self, say: Say) -> None:
        """Write the originals' answers, and validate them."""

    def digest_of_written(self, minutes: int) -> Digests:
        """The digests of the answers that were validated."""

    def step(self, step: Step, originals: Originals, out: Path, say: Say) -> list[Row]:
        """Run a step and fill in its result; returns its timeline."""

    def timeline(self, out: Path) -> list[Row]:
        """The timeline of a step that an earlier rating has run."""


class Box:
    """This machine."""

    slots = 1

    def __init__(self, options: RatingOptions) -> None:
        self._options = options

    def free_bytes(self) -> int:
        """The free memory of this machine."""
        return available_bytes()

    def machine(self) -> Entry:
        """This machine."""
        return machine()

    def prepare(self, manifest: Entry, say: Say) -> Originals:
        """Run the originals, and save their digests and their state."""
        options = self._options
        return prepare(options.base, manifest, options.out / "reference", PROBE_MINUTES, say)

    def make_validated(self, say: Say) -> None:
        """Write the originals' answers, and validate them."""
        make_validated(self._options.base, self._options.originals, self._options.threads, say)

    def digest_of_written(self, minutes: int) -> Digests:
        """The digests of the answers that were validated."""
        return digest_of_written(self._options.originals / "output.parquet", minutes)

    def step(self, step: Step, originals: Originals, out: Path, say: Say) -> list[Row]:
        """Run a step and fill in its result; returns its timeline."""
        setting = Setting(self._options.base, self._options.threads, self._options.speed)
        state = originals.state if step.kind == "probe" else None
        return run_step(step, setting, out, originals.digests, state, say)

    def timeline(self, out: Path) -> list[Row]:
        """The timeline of a step that an earlier rating has run."""
        return timeline_of(out)


def timeline_of(folder: Path) -> list[Row]:
    """The timeline of a run; empty if there is none."""
    path = folder / "timeline.csv"
    return read_timeline(path) if path.is_file() else []
