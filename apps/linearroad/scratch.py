"""Temporary folders, removed at the end, or by the next run after a process was killed.

A folder is in use as long as a process holds the lock on the file `lock` in it. The kernel releases
the lock when the last process that holds it ends in any way. Process identifiers, which may be
reused, are not needed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from linearroad.storage import is_remote, make_folder, remove_tree, share_with_group

__all__ = ["Scratch", "claimed", "fullest", "in_use", "remove_abandoned", "scratch", "written_to"]

LOCK = "lock"
#: A folder this recent may not have its lock yet.
UNLOCKED_FOR_S = 3600.0
_written_to: list[Path] = []


@dataclass(frozen=True)
class Scratch:
    """A folder, and the descriptor that a child must inherit to keep it in use."""

    folder: Path
    lock: int


@contextmanager
def scratch(beside: Path, prefix: str) -> Iterator[Scratch]:
    """A temporary folder below `beside`; those of killed processes are removed."""
    if is_remote(beside):
        with _remote_scratch(beside, prefix) as folder:
            yield Scratch(folder, -1)
        return
    remove_abandoned(beside, prefix)
    made = _make(beside, prefix)
    try:
        with written_to(beside):
            yield made
    finally:
        shutil.rmtree(made.folder, ignore_errors=True)
        os.close(made.lock)


@contextmanager
def _remote_scratch(beside: Path, prefix: str) -> Iterator[Path]:
    """The same on storage without locks, where one process at a time uses `beside`."""
    for left in beside.glob(f"{prefix}*"):
        remove_tree(left)
    folder = beside / f"{prefix}{uuid.uuid4().hex[:8]}"
    make_folder(folder)
    try:
        yield folder
    finally:
        remove_tree(folder)


@contextmanager
def written_to(folder: Path) -> Iterator[None]:
    """Register a folder that is written to, for `fullest`."""
    _written_to.append(folder)
    try:
        yield
    finally:
        _written_to.remove(folder)


def _make(beside: Path, prefix: str) -> Scratch:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=beside))
        share_with_group(folder)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _locked(lock) and os.fstat(lock).st_nlink > 0:
            return Scratch(folder, lock)
        # Another process removed the folder between the two calls.
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove_abandoned(beside: Path, prefix: str) -> None:
    """Remove folders below `beside` that no process uses."""
    for folder in beside.glob(f"{prefix}*"):
        if folder.is_dir() and not folder.is_symlink() and not in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)


def in_use(folder: Path) -> bool:
    """Whether a process holds the lock of a folder, or may be about to."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        try:
            return time.time() - folder.stat().st_mtime < UNLOCKED_FOR_S
        except OSError:
            return False
    except OSError:
        return True  # another user's
    try:
        return not _locked(lock)
    except OSError:
        return True  # a file system without locks: assume that it is in use
    finally:
        os.close(lock)


@contextmanager
def claimed(folder: Path) -> Iterator[bool]:
    """Lock a folder that is not temporary; yields False if another process has the lock."""
    if is_remote(folder):  # has no locks
        yield True
        return
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield _locked(lock)
    finally:
        os.close(lock)


def fullest() -> Path:
    """The folder with the least free space among those that are written to."""

    def free(folder: Path) -> int:
        try:
            return shutil.disk_usage(folder).free
        except (OSError, TypeError):  # gone, or not of this machine
            return 1 << 62

    return min([*_written_to, Path(tempfile.gettempdir())], key=free)
