"""`Quarantine`: a file for bad input that a source leaves out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO

from xstream.console.folder import lock_soon
from xstream.errors import InputError

__all__ = ["DamagedInput", "Quarantine"]

_LONGEST_TEXT = 1000


class DamagedInput(InputError):
    """A file cannot be read from some place on: it is truncated or damaged there."""


class Quarantine:
    """A file with one JSON line for each piece of bad input, and a budget that ends the run.

    It is emptied when it is opened, and locked until it is closed: two sources cannot share one.
    """

    def __init__(self, path: Path, budget: int) -> None:
        self.path, self.budget = Path(path), budget
        self.count = 0
        self._file: IO[str] | None = None

    def open(self) -> None:
        """Create or empty the file."""
        try:
            self._file = self._claimed()
        except OSError as error:
            raise self._unwritable(error) from error

    def _claimed(self) -> IO[str]:
        file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666), "r+", encoding="utf-8")
        try:
            lock_soon(file.fileno())
            if os.pread(file.fileno(), 1, 0) not in (b"", b"{"):
                raise InputError(
                    f"{self.path} has other contents: choose another quarantine= for bad input"
                )
            file.truncate(0)
        except BlockingIOError:
            file.close()
            raise InputError(
                f"another source is writing bad input to {self.path}: each needs a file of its own"
            ) from None
        except BaseException:
            file.close()
            raise
        return file

    def put(self, file: Path, where: str, at: int, reason: str, text: str) -> None:
        """Store a piece of bad input; `where` is the unit of `at`: a line, a row or a byte."""
        if self.count >= self.budget:
            raise InputError(
                f"{file}: {where} {at}: {reason}; the budget of {self.budget:,} for bad input, "
                f"which is in {self.path}, is spent"
            )
        self.count += 1
        assert self._file is not None
        try:
            entry = {"file": str(file), where: at, "reason": reason, "text": text[:_LONGEST_TEXT]}
            self._file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"{self.path}, for bad input, cannot be written: {error.strerror}")

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError as error:
            raise self._unwritable(error) from error
