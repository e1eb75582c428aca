"""The folder of a run: written by one run at a time, free of what an earlier one left."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xstream.errors import InputError

__all__ = ["RESULTS", "new_file", "result_folder"]

#: What a run writes, and what others write about it: the verdict on its answers and the report.
RESULTS = (
    "output.csv", "output.parquet", "digests.parquet", "summary.json", "rejects.csv",
    "timeline.csv", "validation.json", "differences.parquet", "report.html",
)  # fmt: skip
#: Some network file systems lock no folders: two runs are then not kept apart.
_NO_LOCKS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)


@contextmanager
def result_folder(path: Path, source: Path) -> Iterator[None]:
    """Make the folder, keep other runs out of it, and remove the results of an earlier run.

    The folder itself is locked. The kernel frees the lock with the process, however that ends, and
    no file is left that would have to be removed.
    """
    if source.resolve() in ((path / name).resolve() for name in RESULTS):
        raise InputError(f"{source} would be overwritten: choose another --out")
    path.mkdir(parents=True, exist_ok=True)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(folder, path)
        for name in RESULTS:
            (path / name).unlink(missing_ok=True)
            for leftover in path.glob(f".{name}.*.tmp"):  # of a run that was killed
                leftover.unlink(missing_ok=True)
        yield
    finally:
        os.close(folder)


def _lock(folder: int, path: Path) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"another run is writing to {path}: wait for its end or choose another --out"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def new_file(path: Path) -> Path:
    """Remove whatever has this name, so that it can be created; a symlink is never followed.

    Files are to be created with mode `x`, which does not follow what is put there meanwhile either.
    """
    path.unlink(missing_ok=True)
    return path
