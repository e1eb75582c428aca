"""The folder of a run's checkpoints: one file for each, of which the last two are kept."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xstream.console.folder import locked_folder
from xstream.errors import InputError
from xstream.recovery.format import DamagedError, Stored, glimpse, read_checkpoint

__all__ = ["Generations", "Pending", "has_checkpoint", "latest_owners"]

#: The number of checkpoints that are kept.
KEPT = 2
_NAME = re.compile(r"checkpoint-(\d{1,12})")


@dataclass
class Pending:
    """A checkpoint that is being written under a temporary name."""

    number: int
    part: Path
    file: int
    began: float = field(default_factory=time.perf_counter)


def has_checkpoint(folder: Path) -> bool:
    """Whether there is a checkpoint in a folder, whole or damaged."""
    return folder.is_dir() and any(_NAME.fullmatch(path.name) for path in folder.iterdir())


def latest_owners(folder: Path) -> dict[str, Any]:
    """What objects with state will probably go on from, by operator; nothing of it is verified."""
    found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    latest = max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    owners = glimpse(latest).get("owners") if latest is not None else None
    return owners if isinstance(owners, dict) else {}


class Generations:
    """Numbered checkpoints in a folder that one run uses at a time.

    A checkpoint gets its name when it is on disk as a whole, so a name stands for a whole file,
    unless the disk loses data later: then it is recognised as damaged, and the one before is used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: int | None = locked_folder(folder)

    def close(self) -> None:
        """Release the folder for other runs."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def numbers(self) -> list[int]:
        """The numbers of the checkpoints that are there, latest first."""
        found = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted((int(match[1]) for match in found if match), reverse=True)

    def path(self, number: int) -> Path:
        """The file of a checkpoint."""
        return self.folder / f"checkpoint-{number:06d}"

    # -- reading -----------------------------------------------------------------------------

    def latest(self, check: Callable[[Stored], None]) -> tuple[Stored | None, list[str]]:
        """The latest whole checkpoint, or None, and sentences about those that are damaged.

        `check` raises an error for a checkpoint of another query.
        """
        damaged: list[str] = []
        for number in self.numbers():
            try:
                stored = read_checkpoint(self.path(number))
            except DamagedError as error:
                damaged.append(str(error))
                continue
            check(stored)
            return stored, damaged
        if damaged:
            raise InputError(f"no checkpoint in {self.folder} can be used: {'; '.join(damaged)}")
        return None, damaged

    # -- writing -----------------------------------------------------------------------------

    def discard(self) -> None:
        """Remove the checkpoints of earlier runs, and what they left unfinished."""
        for number in self.numbers():
            self.path(number).unlink(missing_ok=True)
        self.remove_parts()
        self._flush()

    def remove_parts(self) -> None:
        """Remove files of checkpoints that were not completed."""
        for part in self.folder.glob(".checkpoint-*.part"):
            part.unlink(missing_ok=True)

    def begin(self, number: int) -> Pending:
        """Create the file of the next checkpoint."""
        part = self.folder / f".checkpoint-{number:06d}.{os.getpid()}.part"
        return Pending(number, part, os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))

    def publish(self, pending: Pending) -> None:
        """Give a file that is on disk its name, and remove those that are no longer needed."""
        os.close(pending.file)
        os.replace(pending.part, self.path(pending.number))
        self._flush()
        for number in self.numbers()[KEPT:]:
            self.path(number).unlink(missing_ok=True)

    def give_up(self, pending: Pending) -> None:
        """Remove a file that could not be written."""
        with suppress(OSError):
            os.close(pending.file)
        with suppress(OSError):
            pending.part.unlink(missing_ok=True)

    def _flush(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
