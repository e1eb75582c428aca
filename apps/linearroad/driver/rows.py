"""The rows of an input, which can be read again from a second on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from linearroad.driver.results import DriveOptions
from linearroad.driver.traffic import Second, seconds
from linearroad.input import Reject, RowReader, open_input
from linearroad.output.writers import RejectWriter
from xstream.errors import InputError
from xstream.io.schedule import NO_LIMIT

__all__ = ["InputRows"]


class _NewRejects:
    """Writes the rejects of a file, each once, however often the file is read."""

    def __init__(self, rejects: RejectWriter, name: str) -> None:
        self._rejects, self._name = rejects, name
        self._line = 0

    def write(self, reject: Reject) -> None:
        """Write a reject, unless it was written before."""
        if reject.line > self._line:
            self._line = reject.line
            self._rejects.write(reject, self._name)


class InputRows:
    """The seconds of an input."""

    def __init__(self, source: Path, rules: str, options: DriveOptions) -> None:
        self._source, self._rules, self._minutes = source, rules, options.minutes
        self.readers: Sequence[RowReader] = open_input(source, rules)
        self._rejects: list[_NewRejects] = []

    def write_rejects(self, rejects: RejectWriter) -> None:
        """Write rows that cannot be sent to `rejects`."""
        self._rejects = [_NewRejects(rejects, reader.name) for reader in self.readers]

    def first(self) -> Iterator[Second]:
        """All seconds, the first of them read; raises InputError if there is none."""
        found = self._seconds(self.readers, 0)
        first = next(found, None)
        if first is None:
            within = "" if self._minutes is None else f" in its first {self._minutes:,} minutes"
            raise InputError(f"{self._source} has no rows{within}")
        return chain((first,), found)

    def again(self, begin_s: int) -> Iterator[Second]:
        """The seconds from one on, read again."""
        return self._seconds(open_input(self._source, self._rules), begin_s)

    def _seconds(self, readers: Sequence[RowReader], begin_s: int) -> Iterator[Second]:
        for reader, rejects in zip(readers, self._rejects, strict=True):
            reader.on_reject = rejects.write
        return seconds(readers, NO_LIMIT if self._minutes is None else 60 * self._minutes, begin_s)
