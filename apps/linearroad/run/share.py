"""What one task of a cluster runs: some expressways, or copies of all of them.

Vehicles stay within a group of expressways (`generate --group`) or within a copy of all of them, so
groups and copies can run on different machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from linearroad.generation.manifest import Entry, read_manifest
from linearroad.run.copies import Copy
from xstream.errors import InputError

__all__ = ["Share", "shares_of"]


@dataclass(frozen=True)
class Share:
    """Files `first_file` and following, in copies `first_copy` and following."""

    number: int
    first_file: int
    files: int
    first_copy: int = 0
    copies: int = 1

    @property
    def name(self) -> str:
        """The name of its folders."""
        return f"group-{self.number:05d}"

    @property
    def expressways(self) -> int:
        """The number of its expressways."""
        return self.files * self.copies

    @property
    def numbers(self) -> range:
        """The numbers of its files."""
        return range(self.first_file, self.first_file + self.files)

    def of(self, copies: Sequence[Copy]) -> list[Copy]:
        """Its copies, among all."""
        return list(copies[self.first_copy : self.first_copy + self.copies])


def shares_of(source: Path, copies: int, slots: int, group: int | None) -> list[Share]:
    """The shares of a generated directory, of `group` expressways each if that is given.

    Copies are spread evenly over the tasks that can run at a time (`slots`).
    """
    if not source.is_dir():
        raise InputError(f"--master requires a generated directory, and {source} is a file")
    manifest = read_manifest(source)
    files = int(manifest["parameters"]["expressways"])
    if copies > 1:
        firsts = _evenly(copies, slots)
        if group is not None:
            if group % files:
                raise InputError(
                    f"copies of {source} have {files} expressways each, so --group must be a "
                    f"multiple of {files}, not {group}"
                )
            firsts = [*range(0, copies, group // files), copies]
        return [
            Share(n, 0, files, first, end - first)
            for n, (first, end) in enumerate(pairwise(firsts))
        ]
    each = group or _group(manifest)
    if each % _group(manifest):
        raise InputError(
            f"{source} was generated with --group {_group(manifest)}, so --group must be a "
            f"multiple of it, not {each}"
        )
    return [
        Share(n, first, min(each, files - first)) for n, first in enumerate(range(0, files, each))
    ]


def _evenly(copies: int, slots: int) -> list[int]:
    """The first copy of each task, and the end of the last; tasks differ by one copy at most.

    >>> _evenly(4, 3)
    [0, 1, 2, 4]
    """
    tasks = max(min(slots, copies), 1)
    return [copies * n // tasks for n in range(tasks + 1)]


def _group(manifest: Entry) -> int:
    """The number of expressways among which vehicles and requests stay."""
    parameters = manifest["parameters"]
    return int(parameters.get("group") or parameters["expressways"])
