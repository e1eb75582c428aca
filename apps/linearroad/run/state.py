"""Checkpoints: the state of a run at the end of a minute, from which many copies can start.

A checkpoint contains the arrays of the kernels, by expressway. A copy starts with the arrays of its
original, with shifted vehicle numbers. A resumed run gives the same answers as one without a break.
`state.json` lists every file with its size and checksum and is written last. Files are checked
against this list, and arrays against the invariants of the kernels (`invariants`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xstream as xs
from linearroad.files import remove_temporaries, whole
from linearroad.generation.manifest import (
    Entry,
    check_file,
    file_entry,
    read_json,
    read_manifest,
    write_json,
)
from linearroad.operators.copies import (
    shifted_accounts,
    shifted_vehicles,
)
from linearroad.run.copies import Copy
from linearroad.run.engine import Engine
from linearroad.run.invariants import Limits, check_state
from xstream.errors import InputError
from xstream.io.saved_arrays import Arrays, read_arrays, write_arrays

__all__ = ["KeptState", "keep_state", "read_state"]

VERSION = 5
META = "state.json"
ACCOUNTS = "accounts"
MOST_MINUTES = 2**31 // 60
#: Kernels of each expressway that have state; the accounts of all expressways are one state.
BY_EXPRESSWAY = ("vehicles", "accidents", "segment statistics", "tolls")

_SHIFTED: dict[str, Callable[[Arrays, int, int], Arrays]] = {
    "vehicles": shifted_vehicles,
    ACCOUNTS: shifted_accounts,
}


def keep_state(directory: Path, source: Path, engine: Engine, minute: int) -> None:
    """Save the state of the kernels at the end of a minute of generated traffic."""
    run = engine.done
    assert run is not None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / META).unlink(missing_ok=True)
        remove_temporaries(directory)
        files = [
            _write(directory, name, run.state(stream)) for name, _, stream in kernels_of(engine)
        ]
        meta = {"version": VERSION, "minute": minute, "traffic": _traffic(source), "files": files}
        write_json(directory / META, meta)
    except OSError as error:
        raise InputError(f"{directory} cannot be written: {error.strerror}") from error


def _names(expressways: int) -> list[str]:
    """The names of the kernels whose state is saved."""
    named = [f"{kernel} {xway}" for xway in range(expressways) for kernel in BY_EXPRESSWAY]
    return [*named, f"{ACCOUNTS} 0"]


def _path(directory: Path, name: str) -> Path:
    return directory / f"{name.replace(' ', '-')}.npz"


def _write(directory: Path, name: str, arrays: Arrays) -> Entry:
    path = _path(directory, name)
    with whole(path) as temporary:
        write_arrays(temporary, arrays)
    return file_entry(directory, path)


def _traffic(source: Path) -> dict[str, Any]:
    """The parameters and totals of the traffic, which must equal those of the state."""
    manifest = read_manifest(source)
    return {"parameters": manifest["parameters"], "totals": manifest["totals"]}


def kernels_of(engine: Engine) -> Iterator[tuple[str, Copy, xs.Stream]]:
    """The kernels with state: the name of the original, the copy, and the stream."""
    for c, copy in enumerate(engine.copies):
        for feed, parts in zip(engine.feeds, engine.parts, strict=True):
            for kernel in BY_EXPRESSWAY:
                yield f"{kernel} {feed.number}", copy, parts[c].kept[kernel]
        yield f"{ACCOUNTS} 0", copy, engine.accounts[c]


class InitialState(Mapping[xs.Stream, xs.KernelState]):
    """The initial state of each kernel of a query, computed on access."""

    def __init__(self, engine: Engine, originals: dict[str, Arrays]) -> None:
        self._originals = originals
        self._kernels = {stream: (name, copy) for name, copy, stream in kernels_of(engine)}

    def __getitem__(self, stream: xs.Stream) -> xs.KernelState:
        name, copy = self._kernels[stream]
        shifted = _SHIFTED.get(name.rpartition(" ")[0])
        arrays = self._originals[name]
        return shifted(arrays, copy.vid_by, copy.xway_by) if shifted else arrays

    def __iter__(self) -> Iterator[xs.Stream]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)


@dataclass(frozen=True)
class KeptState:
    """The state at the end of a minute, by kernel and expressway."""

    minute: int
    originals: dict[str, Arrays]

    def of(self, engine: Engine) -> InitialState:
        """The initial states of the kernels of a query; the arrays read are shared."""
        return InitialState(engine, self.originals)


def read_state(directory: Path, source: Path) -> KeptState:
    """Read and check a state that `keep_state` wrote for this traffic."""
    if not (directory / META).is_file():
        raise InputError(f"{directory} contains no saved state: create one with `run --keep-state`")
    meta = read_json(directory / META)
    if meta.get("version") != VERSION:
        raise InputError(
            f"{directory} is a saved state of version {meta.get('version')}, not {VERSION}: "
            "save it again"
        )
    traffic = _traffic(source)
    if meta.get("traffic") != traffic:
        raise InputError(f"{directory} is a saved state of other traffic than {source}")
    minute, last = meta.get("minute"), traffic["parameters"].get("minutes", MOST_MINUTES)
    if type(minute) is not int or not 0 <= minute <= last:
        raise InputError(f"{directory / META}: minute must be from 0 to {last:,}, not {minute!r}")
    expressways = int(traffic["parameters"]["expressways"])
    limits = Limits(minute, int(traffic["totals"]["vehicles"]), expressways)
    return KeptState(minute, _originals(directory, meta, limits))


def _originals(directory: Path, meta: Entry, limits: Limits) -> dict[str, Arrays]:
    """The arrays of all kernels; raises an error about the first that is not valid."""
    files = meta.get("files")
    entries = {
        entry.get("file"): entry
        for entry in (files if isinstance(files, list) else [])
        if isinstance(entry, dict)
    }
    found = {}
    for name in _names(limits.expressways):
        path = _path(directory, name)
        check_file(path, entries.get(path.name), str(directory / META))
        found[name] = read_arrays(path)
        wrong = check_state(name.rpartition(" ")[0], found[name], limits)
        if wrong is not None:
            raise InputError(f"{path} is not a valid saved state: {wrong}")
    return found
