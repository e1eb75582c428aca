"""Checks of output paths, made before the work begins so that no result is lost at its end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xstream.errors import InputError

__all__ = ["check_output_directory", "check_output_file", "whole_file"]


def check_output_file(path: Path) -> None:
    """Refuse a file that cannot be written. Nothing is created or changed."""
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a directory")
    if path.exists():
        try:
            path.open("ab").close()
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from error
    _check_folder(path, path.parent)


def check_output_directory(path: Path) -> None:
    """Refuse a directory that cannot be created or written to. Nothing is created."""
    _check_folder(path, path)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Return a temporary file that replaces `path` when the block ends without an error."""
    if path.exists() and not path.is_file():
        yield path  # a device or a pipe, which must not be replaced
        return
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def _check_folder(path: Path, folder: Path) -> None:
    """Try to create a temporary file in the nearest folder that exists."""
    existing = folder.absolute()
    try:
        while not existing.exists():
            existing = existing.parent
        if not existing.is_dir():
            raise InputError(f"{path} cannot be written: {existing} is not a directory")
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
