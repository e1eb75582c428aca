"""`xstream linearroad pack`: the environment of this process as one archive for executors.

It holds the interpreter, its standard library, xstream and the packages that it needs, so that the
machines of a cluster need nothing but Java and the C library. Spark unpacks it on every executor.
"""

from __future__ import annotations

import io
import os
import platform
import re
import shutil
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path

from linearroad.scratch import scratch
from linearroad.storage import is_remote, make_folder, place, upload
from xstream.errors import InputError

__all__ = ["distributions", "pack"]

EXTRA = "linearroad"
#: What a program needs at run time is elsewhere.
LEFT_OUT = {
    "__pycache__", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "jars",
    "include", "site-packages", "lib2to3",
}  # fmt: skip
SUFFIXES_LEFT_OUT = {".c", ".h", ".hpp", ".pxd", ".pyx", ".pyi", ".a", ".exe"}
_STARTER = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH="$here/../lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" exec "$here/{python}" "$@"
"""
File = tuple[Path, str]


def distributions(name: str = "xstream", extra: str = EXTRA) -> list[str]:
    """A distribution and everything that it requires, with one of its extras."""
    found: dict[str, None] = {}
    waiting = [(name, extra)]
    while waiting:
        one, wanted = waiting.pop()
        key = re.sub(r"[-_.]+", "-", one).lower()
        if key in found:
            continue
        found[key] = None
        for text in metadata.requires(one) or []:
            requirement, _, marker = text.partition(";")
            if "extra ==" in marker and f'"{wanted}"' not in marker.replace("'", '"'):
                continue
            needed = re.split(r"[\s\[<>=!~(]", requirement.strip())[0]
            try:
                metadata.distribution(needed)
            except metadata.PackageNotFoundError:
                continue  # of another platform
            waiting.append((needed, ""))
    return list(found)


def _wanted(path: Path) -> bool:
    return not LEFT_OUT & set(path.parts) and path.suffix not in SUFFIXES_LEFT_OUT


def _tree(root: Path, prefix: str) -> Iterator[File]:
    """The files below a folder."""
    for path in sorted(root.rglob("*")):
        below = path.relative_to(root)
        if path.is_file() and _wanted(below):
            yield path, f"{prefix}/{below.as_posix()}"


def _of_distribution(name: str, library: str) -> Iterator[File]:
    """The files of an installed distribution."""
    distribution = metadata.distribution(name)
    for listed in distribution.files or []:
        path = Path(str(distribution.locate_file(listed)))
        inside = ".." not in listed.parts and listed.suffix != ".pth" and path.is_file()
        if inside and _wanted(Path(*listed.parts)):
            yield path, f"{library}/site-packages/{listed.as_posix()}"


def _files() -> Iterator[File]:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = f"lib/{version}"
    yield Path(sys.executable).resolve(), f"bin/{version}"
    yield from _tree(Path(sysconfig.get_path("stdlib")), library)
    shared = sysconfig.get_config_var("INSTSONAME") or ""
    folder = Path(sysconfig.get_config_var("LIBDIR") or "")
    if ".so" in shared and (folder / shared).exists():
        yield (folder / shared).resolve(), f"lib/{shared}"
    for name in distributions():
        yield from _of_distribution(name, library)
    for package in ("xstream", "linearroad"):  # also where they are installed in place
        spec = util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        yield from _tree(Path(spec.origin).parent, f"{library}/site-packages/{package}")


def pack(out: Path) -> int:
    """Write the archive, or a folder that all machines see; returns the bytes of its files."""
    if platform.system() != "Linux":
        raise InputError("an environment can be packed on Linux only: executors run its programs")
    out = place(out)
    if not str(out).endswith((".tar.gz", ".tgz")):
        return _copy(out)
    with scratch(Path(tempfile.gettempdir()), "xstream-pack-") as room:
        archive = room.folder / "environment.tar.gz"
        with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
            for path, name in _once():
                packed.add(path, name, recursive=False, filter=_plain)
            entry = tarfile.TarInfo("bin/python")
            entry.size, entry.mode = len(_starter()), 0o755
            packed.addfile(entry, io.BytesIO(_starter()))
        return upload(archive, out)


def _copy(folder: Path) -> int:
    if is_remote(folder) or (folder.exists() and any(folder.iterdir())):
        raise InputError(
            f"{folder} must be a new folder or, in other storage, end in .tar.gz, by which Spark "
            "knows the format"
        )
    size = 0
    for path, name in _once():
        target = folder / name
        make_folder(target.parent)
        shutil.copyfile(path, target)
        target.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
        size += target.stat().st_size
    (folder / "bin" / "python").write_bytes(_starter())
    (folder / "bin" / "python").chmod(0o755)
    return size


def _once() -> Iterator[File]:
    """All files, each name once."""
    names = set[str]()
    for path, name in _files():
        if name not in names:
            names.add(name)
            yield path, name


def _starter() -> bytes:
    """`bin/python`, which finds the interpreter's own library wherever it is unpacked."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return _STARTER.format(python=version).encode()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Readable by every user of a cluster, and nobody's."""
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
