"""`Journal`: the finished parts of an experiment, so that an interrupted one can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Journal"]


class Journal:
    """A file of rows, one part after the other; the first line says how they were measured.

    A part is written when it is complete. Rows that were measured in another way (another scale,
    commit or clock) are not read back, and the file is begun anew.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "journal.jsonl")
    >>> Journal(path, {"trials": 3}).add([{"trial": 0, "v": 1.5}])
    >>> Journal(path, {"trials": 3}).rows
    [{'trial': 0, 'v': 1.5}]
    >>> Journal(path, {"trials": 9}).rows
    []
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, how: Mapping[str, Any], resume: bool = True) -> None:
        self.path, self.how = path, dict(how)
        #: The rows of finished parts.
        self.rows = list(self._read()) if resume else []

    def _read(self) -> Iterator[dict[str, Any]]:
        if not self.path.is_file():
            return
        lines = self.path.read_text().splitlines()
        if not lines or json.loads(lines[0]) != self.how:
            return
        for line in lines[1:]:
            try:
                part = json.loads(line)
            except json.JSONDecodeError:  # written when the machine went down
                return
            yield from part

    def add(self, part: Sequence[Mapping[str, Any]]) -> None:
        """Keep the rows of a part that is complete, in one line."""
        if not self.rows:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.how) + "\n")
        with self.path.open("a") as file:
            file.write(json.dumps(list(part)) + "\n")
        self.rows.extend(map(dict, part))

    def remove(self) -> None:
        """Delete the file: the experiment is finished, and its results are elsewhere."""
        self.path.unlink(missing_ok=True)
