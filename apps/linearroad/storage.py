"""Where files are: folders of this machine and of a network, or the storage of a URI.

`place` reads what a user types. A folder, or a `file://` URI, becomes an absolute `Path`; the URI
of another scheme that pyarrow knows (`s3`, `gs`, `hdfs`, `abfs`) becomes a `RemotePath`, which has
the same methods. Nothing here depends on the working directory or on the user: paths are made
absolute on the driver, and what is created in a folder that a group shares (with the setgid bit) is
shared by that group too.

Storage without an atomic rename gets files by copy and deletion (`rename`). Readers must therefore
only open what a manifest, a receipt or a summary lists, and these are written last.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import stat as modes
import uuid
from collections.abc import Generator
from contextlib import suppress
from functools import cache
from pathlib import Path, PosixPath
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any

from xstream.console import check_output_directory
from xstream.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "RemotePath",
    "absolute",
    "check_writable",
    "is_remote",
    "local_copy",
    "make_folder",
    "mapped",
    "place",
    "readable",
    "remove_tree",
    "rename",
    "share_with_group",
    "spark_uri",
    "typed",
    "upload",
    "writable",
]  # fmt: skip

_URI = re.compile(r"([a-z][a-z0-9+.-]+)://([^/]*)(/.*)?", re.IGNORECASE | re.DOTALL)
#: Schemes of pyarrow, and how Hadoop's file systems, by which Spark reads, call them.
SPARK_SCHEMES = {
    "s3": "s3a", "gs": "gs", "hdfs": "hdfs", "abfs": "abfs", "abfss": "abfss", "mock": "mock",
}  # fmt: skip
BLOCK_BYTES = 1 << 22


def place(text: str | Path) -> Path:
    """The absolute path of a folder or file, or that of a URI.

    >>> place("file:///srv/road").as_posix()
    '/srv/road'
    >>> str(place("s3://bucket/road") / "manifest.json")
    's3://bucket/road/manifest.json'
    """
    if isinstance(text, RemotePath):
        return text
    found = _URI.fullmatch(str(text))
    if found is None:
        return Path(text).absolute()
    scheme, host, path = found[1].lower(), found[2], found[3] or "/"
    if scheme == "file":
        if host not in ("", "localhost"):
            raise InputError(f"{text} names a file of {host}: use file:///PATH")
        return Path(path).absolute()
    if scheme not in SPARK_SCHEMES:
        known = ", ".join(name for name in SPARK_SCHEMES if name != "mock")
        raise InputError(f"{scheme}:// is not supported: use a path, file://, {known}")
    if "@" in host and scheme not in ("abfs", "abfss"):
        raise InputError(
            f"a {scheme}:// URI must not contain credentials, which would appear in logs: set them "
            "in the environment of the driver and of the executors"
        )
    if not host:
        raise InputError(f"{scheme}:// needs a name: {scheme}://NAME/PATH")
    return RemotePath(f"{scheme}:", host, *(part for part in path.split("/") if part))


def typed(text: str | Path) -> Path:
    """A path as it was typed, or that of a URI; for options of commands."""
    return place(text) if "://" in str(text) else Path(text)


def absolute(path: Path | None) -> Path | None:
    """The same file or folder, for workers with other working directories."""
    return None if path is None else place(path)


@cache
def _storage(scheme: str, host: str) -> tuple[Any, str]:
    """The file system of pyarrow, and the path of its root; one per process."""
    from pyarrow import fs

    try:
        found, root = fs.FileSystem.from_uri(f"{scheme}://{host}/")
    except Exception as error:
        raise InputError(f"{scheme}://{host} cannot be opened: {error}") from error
    return found, root.rstrip("/")


class RemotePath(PosixPath):
    """A path of a URI, with those methods of `Path` that are used here.

    It is no path of this machine: `os.fspath` and everything that relies on it refuse it.
    """

    def __str__(self) -> str:
        text = "/".join(self.parts)
        return text.replace(":/", "://", 1) if self.parts and self.parts[0][-1:] == ":" else text

    def as_posix(self) -> str:
        return str(self)

    def __fspath__(self) -> str:
        raise TypeError(f"{self} is not a file of this machine")

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    @property
    def storage(self) -> tuple[Any, str]:
        """The file system of pyarrow, and this path in it."""
        found, root = _storage(self.parts[0][:-1], self.parts[1])
        return found, "/".join([root, *self.parts[2:]]) if self.parts[2:] else root

    def as_uri(self) -> str:
        return str(self)

    def absolute(self) -> RemotePath:
        return self

    def resolve(self, strict: bool = False) -> RemotePath:
        return self

    # -- what is there -------------------------------------------------------------------------

    def _info(self) -> Any:
        found, path = self.storage
        return found.get_file_info(path)

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return bool(self._info().type.name != "NotFound")

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return bool(self._info().type.name == "File")

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return bool(self._info().type.name == "Directory")

    def is_symlink(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> Any:
        """The size and the time of the last change."""
        found = self._info()
        if found.type.name == "NotFound":
            raise FileNotFoundError(f"{self} does not exist")
        return SimpleNamespace(
            st_size=found.size or 0, st_mtime_ns=found.mtime_ns or 0, st_mode=0,
            st_mtime=(found.mtime_ns or 0) / 1e9,
        )  # fmt: skip

    def _below(self, recursive: bool) -> Generator[RemotePath, None, None]:
        from pyarrow import fs

        found, path = self.storage
        chosen = fs.FileSelector(path, allow_not_found=True, recursive=recursive)
        for each in found.get_file_info(chosen):
            yield self.joinpath(*each.path[len(path) :].strip("/").split("/"))

    def iterdir(self) -> Generator[RemotePath, None, None]:
        return self._below(recursive=False)

    def glob(self, pattern: str) -> Generator[RemotePath, None, None]:  # type: ignore[override, unused-ignore]
        depth = pattern.count("/")
        for each in self._below(recursive=depth > 0):
            below = each.parts[len(self.parts) :]
            if len(below) == depth + 1 and fnmatch.fnmatchcase("/".join(below), pattern):
                yield each

    def rglob(self, pattern: str) -> Generator[RemotePath, None, None]:  # type: ignore[override, unused-ignore]
        yield from (each for each in self._below(True) if fnmatch.fnmatchcase(each.name, pattern))

    # -- contents ------------------------------------------------------------------------------

    def open(self, mode: str = "r", *_: Any, **__: Any) -> IO[Any]:  # type: ignore[override]
        """A file of bytes."""
        if mode not in ("rb", "wb"):
            raise ValueError(f"{self} can be opened with rb or wb, not {mode}")
        opened: IO[Any] = readable(self) if mode == "rb" else writable(self)
        return opened

    def read_bytes(self) -> bytes:
        with self.open("rb") as file:
            return bytes(file.read())

    def read_text(self, *_: Any, **__: Any) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, data: Any) -> int:
        with self.open("wb") as file:
            file.write(data)
        return len(data)

    def write_text(self, data: str, *_: Any, **__: Any) -> int:
        return self.write_bytes(data.encode())

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        found, path = self.storage
        found.create_dir(path, recursive=True)

    def unlink(self, missing_ok: bool = False) -> None:
        found, path = self.storage
        try:
            found.delete_file(path)
        except (FileNotFoundError, OSError):
            if not missing_ok or self.exists():
                raise


def is_remote(path: Path) -> bool:
    """Whether a path is that of a URI."""
    return isinstance(path, RemotePath)


def readable(path: Path) -> Any:
    """What pyarrow reads: the path itself, or an open file."""
    if not isinstance(path, RemotePath):
        return path
    found, name = path.storage
    return found.open_input_file(name)


def writable(path: Path) -> Any:
    """What pyarrow writes: the path itself, or an open file."""
    if not isinstance(path, RemotePath):
        return path
    found, name = path.storage
    return found.open_output_stream(name)


def mapped(path: Path, dtype: Any) -> NDArray[Any]:
    """The values of a raw file, in memory only as far as they are used if it is a local one."""
    import numpy as np

    if not is_remote(path):
        return np.memmap(path, dtype, "r")
    return np.frombuffer(path.read_bytes(), dtype)


def spark_uri(path: Path) -> str:
    """The fully qualified path by which Spark reads and writes."""
    if not isinstance(path, RemotePath):
        return path.absolute().as_uri()
    scheme = path.parts[0][:-1]
    return SPARK_SCHEMES[scheme] + str(path)[len(scheme) :]


def make_folder(path: Path) -> None:
    """Create a folder. Below a folder of a group (with the setgid bit) the group may write too."""
    if is_remote(path):
        return path.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        return None
    make_folder(path.parent)
    with suppress(FileExistsError):
        path.mkdir()
        share_with_group(path)
    return None


def share_with_group(path: Path) -> None:
    """Give the group of the folder above the same access to a new folder, if that is shared."""
    above = modes.S_IMODE(path.parent.stat().st_mode)
    if above & modes.S_ISGID:
        path.chmod(above & 0o2775)


def check_writable(path: Path) -> None:
    """Refuse a folder that cannot be created or written to. Nothing is left in it."""
    if not is_remote(path):
        check_output_directory(path)
        return
    probe = path / f".{uuid.uuid4().hex}.tmp"
    try:
        make_folder(path)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error}") from error


def rename(source: Path, target: Path) -> None:
    """Give a file its final name; where the storage cannot rename, by copy and deletion."""
    if not isinstance(source, RemotePath):
        os.replace(source, target)
        return
    found, name = source.storage
    if not isinstance(target, RemotePath) or target.storage[0] is not found:
        raise ValueError(f"{source} and {target} are in different storage")
    if source.parts[0] == "hdfs:":  # does not replace
        target.unlink(missing_ok=True)
    found.move(name, target.storage[1])


def remove_tree(path: Path) -> None:
    """Remove a folder and everything in it, if it is there."""
    if not isinstance(path, RemotePath):
        shutil.rmtree(path, ignore_errors=True)
        return
    found, name = path.storage
    with suppress(FileNotFoundError):
        found.delete_dir(name)


def local_copy(path: Path, folder: Path) -> Path:
    """A file of this machine: the file itself, or its copy in a folder."""
    if not is_remote(path):
        return path
    target = folder / path.name
    with path.open("rb") as source, target.open("wb") as copied:
        while block := source.read(BLOCK_BYTES):
            copied.write(block)
    return target


def upload(source: Path, target: Path, begin: int = 0, end: int | None = None) -> int:
    """Copy a range of a local file; the copy appears when it is complete. Returns its bytes."""
    from linearroad.files import whole

    size = source.stat().st_size if end is None else end
    left = max(size - begin, 0)
    with whole(target) as temporary, source.open("rb") as file, temporary.open("wb") as copied:
        file.seek(begin)
        while left and (block := file.read(min(BLOCK_BYTES, left))):
            copied.write(block)
            left -= len(block)
    return max(size - begin, 0) - left
