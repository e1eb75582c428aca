"""Compiled kernels on disk: one generated file per kernel, named by its fingerprint.

Numba caches the machine code beside the file. The directory is `$XSTREAM_CACHE_DIR`, or
`xstream/kernels` in the user's cache directory; the least recently used kernels go when there are
more than `KEEP`. Machine code is loaded only if it is byte for byte what was written.

Write access to the directory allows running code, because numba unpickles its files. It must
therefore belong to the user and be closed to all others; otherwise it is not used, with a warning,
and kernels are compiled for the process only.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
import types
import warnings
from contextlib import suppress
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

KEEP = 4096
#: Temporary files older than this are left over from processes that have ended.
ABANDONED_S = 3600.0
OWNER_ONLY = 0o700
WRITABLE_BY_OTHERS = 0o022


def cache_directory() -> Path:
    """Return the directory of compiled kernels."""
    own = os.environ.get("XSTREAM_CACHE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "xstream" / "kernels"


def trusted_directory() -> Path | None:
    """Return the cache directory, created if it is missing; None if it cannot be trusted."""
    return _trusted(cache_directory().absolute())


@cache
def _trusted(directory: Path) -> Path | None:
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            directory.mkdir(mode=OWNER_ONLY)
        found = directory.stat()
        owned = found.st_uid == os.geteuid()
        if owned and not found.st_mode & WRITABLE_BY_OTHERS and found.st_mode & 0o077:
            directory.chmod(OWNER_ONLY)  # just created, so no other user can have written to it
            found = directory.stat()
    except OSError:
        return None  # without a usable directory there is no cache, which is not an error
    if owned and not found.st_mode & 0o077:
        return directory
    whose = "others may write to it" if owned else "it belongs to another user"
    warnings.warn(
        f"compiled kernels are not cached, because {whose}: {directory}; empty it and run "
        f"'chmod 700' on it, or set XSTREAM_CACHE_DIR to a directory of your own",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def read_facts(fingerprint: str) -> dict[str, Any] | None:
    """Return the recorded facts about a kernel; None if it was never typed."""
    noted = _noted(fingerprint)
    return None if noted is None else {"returns": noted["returns"]}


def check_code(fingerprint: str) -> None:
    """Remove machine code that differs from its recorded hash, so that numba compiles it again."""
    noted = _noted(fingerprint)
    try:
        if noted is None or noted["sums"] != _sums(fingerprint):
            forget_code(fingerprint)
    except OSError:
        return  # numba cannot read it either


def _noted(fingerprint: str) -> dict[str, Any] | None:
    directory = trusted_directory()
    if directory is None:
        return None
    path = directory / f"k{fingerprint}.json"
    try:
        noted: dict[str, Any] = json.loads(path.read_bytes())
        returns, _ = noted["returns"], noted["sums"]
        if not (isinstance(returns, list) and all(isinstance(item, str) for item in returns)):
            return None
        os.utime(path)  # marks the kernel as recently used
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return noted


def write_facts(fingerprint: str, facts: dict[str, Any], *, code: bool) -> None:
    """Record the facts that later processes need without compiling, then prune the cache.

    With `code`, also record the hash of the machine code on disk, which was just compiled.
    """
    directory = trusted_directory()
    if directory is None:
        return
    try:
        noted = {**facts, "sums": _sums(fingerprint) if code else {}}
        write_whole(directory / f"k{fingerprint}.json", json.dumps(noted).encode())
        prune(directory)
    except OSError:
        return  # a cache that cannot be written is not an error


def load_module(fingerprint: str, source: str) -> tuple[types.ModuleType, bool]:
    """The generated source as a module, and whether numba can cache what it defines."""
    directory = trusted_directory()
    if directory is None:
        return module_in_memory(fingerprint, source), False
    path = directory / f"k{fingerprint}.py"
    try:
        if not path.exists() or path.read_bytes() != source.encode():
            write_whole(path, source.encode())
    except OSError:
        return module_in_memory(fingerprint, source), False
    spec = spec_from_file_location(f"xstream_kernel_{fingerprint}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # numba imports it by name when it loads cached code
    # From the source itself: numba asks the file only whether it has changed.
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module, True


def module_in_memory(fingerprint: str, source: str) -> types.ModuleType:
    """Return the generated source as a module without a file."""
    module = types.ModuleType(f"xstream_kernel_{fingerprint}")
    exec(compile(source, f"<kernel {fingerprint}>", "exec"), module.__dict__)
    return module


def forget_code(fingerprint: str) -> None:
    """Remove a kernel's machine code."""
    for path in _code_files(fingerprint):
        path.unlink(missing_ok=True)


def _code_files(fingerprint: str) -> list[Path]:
    directory = trusted_directory()
    if directory is None:
        return []
    return sorted((directory / "__pycache__").glob(f"k{fingerprint}.*.nb?"))


def _sums(fingerprint: str) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in _code_files(fingerprint)
    }


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically, because other processes may read it at any time."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(name, path)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process was faster
        return 0.0


def prune(directory: Path) -> None:
    """Keep the kernels used last, whether or not they ever compiled."""
    names = os.listdir(directory)
    if len({name.partition(".")[0] for name in names if name.startswith("k")}) > KEEP:
        _forget_oldest(directory)
    for begun in (directory / name for name in names if name.startswith(".new-")):
        if _modified(begun) < time.time() - ABANDONED_S:
            begun.unlink(missing_ok=True)


def _forget_oldest(directory: Path) -> None:
    used: dict[str, float] = {}
    for path in directory.glob("k*.*"):
        used[path.stem] = max(used.get(path.stem, 0.0), _modified(path))
    for stem in sorted(used, key=lambda stem: used[stem], reverse=True)[KEEP:]:
        for leftover in (*directory.glob(f"{stem}.*"), *directory.glob(f"__pycache__/{stem}.*")):
            leftover.unlink(missing_ok=True)
