"""Compiled kernels on disk: one generated file a kernel, named by its fingerprint.

Numba caches the machine code beside the file. The directory is `$XSTREAM_CACHE_DIR`, or
`xstream/kernels` in the user's cache directory; the least recently used kernels go when there are
more than `KEEP`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import types
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

KEEP = 512


def cache_directory() -> Path:
    """Where compiled kernels are kept."""
    own = os.environ.get("XSTREAM_CACHE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "xstream" / "kernels"


def read_facts(fingerprint: str) -> dict[str, Any] | None:
    """What was noted about this kernel when it was compiled; None if it never was."""
    path = cache_directory() / f"k{fingerprint}.json"
    try:
        facts = json.loads(path.read_text())
        os.utime(path)  # used just now: kept longer than the others
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


def write_facts(fingerprint: str, facts: dict[str, Any]) -> None:
    """Note what a later process needs to know without compiling; then make room."""
    try:
        _write(cache_directory() / f"k{fingerprint}.json", json.dumps(facts))
        _prune()
    except OSError:
        return  # a cache that cannot be written is no cache, and no error


def load_module(fingerprint: str, source: str) -> tuple[types.ModuleType, bool]:
    """The generated source as a module, and whether numba can cache what it defines."""
    path = cache_directory() / f"k{fingerprint}.py"
    try:
        if not path.exists() or path.read_text() != source:
            _write(path, source)
    except OSError:
        module = types.ModuleType(f"xstream_kernel_{fingerprint}")
        exec(compile(source, f"<kernel {fingerprint}>", "exec"), module.__dict__)
        return module, False
    spec = spec_from_file_location(f"xstream_kernel_{fingerprint}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # numba imports it by name when it loads cached code
    spec.loader.exec_module(module)
    return module, True


def _write(path: Path, text: str) -> None:
    """Whole or not at all: other processes may look at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.replace(name, path)


def _prune() -> None:
    directory = cache_directory()
    notes = sorted(directory.glob("k*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for note in notes[KEEP:]:
        for leftover in (*directory.glob(f"{note.stem}.*"),
                         *directory.glob(f"__pycache__/{note.stem}.*")):  # fmt: skip
            leftover.unlink(missing_ok=True)
