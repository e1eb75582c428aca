"""Output files: written under a temporary name and renamed when they are complete."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from xstream.console.folder import lock_soon
from xstream.errors import InputError
from xstream.sigseg import Timebase

__all__ = ["Columns", "OutputFile", "Signals", "TableWriter", "missing", "part_path"]

Columns = Sequence[npt.NDArray[Any]]


@dataclass(frozen=True)
class Signals:
    """The columns of an output by name, and the timebase of rows that are samples."""

    names: tuple[str, ...]
    dtypes: tuple[np.dtype[Any], ...]
    timebase: Timebase
    #: Whether every row is one tuple of scalars; else a row is one sample of every column.
    records: bool


class TableWriter(Protocol):
    """Writes columns into a file of one format."""

    def write(self, columns: Columns) -> None:
        """Append one array for each column, all of one length."""

    def commit(self) -> int | None:
        """Flush everything to disk; return the length that the file can be cut back to, or None."""

    def finish(self) -> None:
        """Complete the file and close it."""

    def abort(self) -> None:
        """Close the file as it is."""


def missing(dtype: np.dtype[Any], samples: int) -> npt.NDArray[Any]:
    """Values for missing samples: NaN, or 0 if the type has no NaN."""
    return np.full(samples, np.nan if dtype.kind in "fc" else 0, dtype)


def part_path(path: Path) -> Path:
    """The name of a file until it is complete."""
    return path.with_name(path.name + ".part")


class OutputFile:
    """A file under its temporary name, locked against other runs.

    `committed` is the length in bytes to which a file of an earlier run is cut back; None starts a
    new file.
    """

    def __init__(self, path: Path, committed: int | None = None) -> None:
        self.path, self.part = path, part_path(path)
        try:
            self.file: IO[bytes] = self._open(committed)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}") from error

    def _open(self, committed: int | None) -> IO[bytes]:
        if committed is not None and not self.part.exists() and self.path.exists():
            os.replace(self.path, self.part)  # the earlier run had ended
        flags = os.O_RDWR if committed is not None else os.O_RDWR | os.O_CREAT
        file = os.fdopen(os.open(self.part, flags, 0o666), "r+b")
        try:
            self._claim(file, committed or 0)
        except BaseException:
            file.close()
            raise
        return file

    def _claim(self, file: IO[bytes], length: int) -> None:
        """Lock the file and cut it to a length."""
        try:
            lock_soon(file.fileno())
        except BlockingIOError:
            raise InputError(
                f"another run is writing {self.path}, or another sink of this one"
            ) from None
        found = os.fstat(file.fileno()).st_size
        if found < length:
            raise InputError(
                f"{self.part} has {found:,} bytes, fewer than the {length:,} of the position"
            )
        file.truncate(length)
        file.seek(length)

    def sync(self) -> int:
        """Flush the file to disk; return its length in bytes."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return os.fstat(self.file.fileno()).st_size

    def complete(self) -> None:
        """Give the file its final name and flush the directory."""
        self.sync()
        os.replace(self.part, self.path)
        self.file.close()
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self) -> None:
        """Leave the file incomplete."""
        self.file.close()
