"""The folder of a run: written by one run at a time, without results of an earlier one."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from xstream.errors import InputError

__all__ = ["cut_back", "lock_soon", "locked_folder", "new_file", "opened", "result_folder"]

#: Some network file systems cannot lock folders. Two runs are then not kept apart.
_NO_LOCKS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)

#: How long to wait for the lock of a process that was killed, and of the child that wrote its
#: checkpoint.
_SOON_S = 0.5


@contextmanager
def result_folder(
    path: Path, source: Path, results: Collection[str], kept: Collection[str] = ()
) -> Iterator[None]:
    """Create the folder, lock it against other runs, and remove the results of an earlier run.

    `results` are the names of the files that a run and its tools write; `kept` are those among
    them that the run goes on with. The folder itself is
    locked: the kernel releases the lock when the process ends in any way, and no lock file is left.
    """
    if source.resolve() in ((path / name).resolve() for name in results):
        raise InputError(f"{source} would be overwritten: choose another --out")
    folder = locked_folder(path)
    try:
        for name in results:
            if name not in kept:
                (path / name).unlink(missing_ok=True)
            for leftover in path.glob(f".{name}.*.tmp"):  # of a run that was killed
                leftover.unlink(missing_ok=True)
        yield
    finally:
        os.close(folder)


def locked_folder(path: Path) -> int:
    """Create a folder and lock it against other runs; the lock ends when the file is closed."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    try:
        _lock(folder, path)
    except BaseException:
        os.close(folder)
        raise
    return folder


def _lock(folder: int, path: Path) -> None:
    try:
        lock_soon(folder)
    except BlockingIOError:
        raise InputError(
            f"another run is writing to {path}: wait for its end or choose another --out"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def lock_soon(folder: int) -> None:
    """Lock a folder. The kernel needs a moment to end the lock of a process that was killed."""
    until = time.monotonic() + _SOON_S
    while time.monotonic() < until:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_SOON_S / 20)
    return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)


def opened(path: Path, go_on: bool) -> BinaryIO:
    """A new file, or with `go_on` the one of an earlier run, to be cut back by the caller."""
    if go_on:
        return open(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b", buffering=0
        )
    return new_file(path).open("x+b", buffering=0)


def cut_back(file: BinaryIO, path: Path, length: int) -> None:
    """Cut a file of an earlier run back to a length, and go on behind it."""
    found = os.fstat(file.fileno()).st_size
    if found < length:
        raise InputError(f"{path} has {found:,} bytes, fewer than the {length:,} of the checkpoint")
    file.truncate(length)
    file.seek(length)


def new_file(path: Path) -> Path:
    """Remove the file of this name, so that it can be created; symlinks are not followed.

    Open it with mode `x`, which does not follow a symlink that is created in between either.
    """
    path.unlink(missing_ok=True)
    return path
