"""`Quarantine`: a file for bad input that a source leaves out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

from xstream.errors import InputError

__all__ = ["Quarantine"]

_LONGEST_TEXT = 1000


class Quarantine:
    """A file with one JSON line for each piece of bad input, and a budget that ends the run."""

    def __init__(self, path: Path, budget: int) -> None:
        self.path, self.budget = Path(path), budget
        self.count = 0
        self._file: IO[str] | None = None

    def put(self, file: Path, where: str, at: int, reason: str, text: str) -> None:
        """Store a piece of bad input; `where` is the unit of `at`: a line, a row or a byte."""
        if self.count >= self.budget:
            raise InputError(
                f"{file}: {where} {at}: {reason}; that is one more than the {self.budget:,} "
                f"pieces of bad input that {self.path} may hold"
            )
        self.count += 1
        try:
            if self._file is None:
                self._file = self.path.open("w", encoding="utf-8")
            entry = {"file": str(file), where: at, "reason": reason, "text": text[:_LONGEST_TEXT]}
            self._file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise InputError(
                f"{self.path}, for bad input, cannot be written: {error.strerror}"
            ) from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
