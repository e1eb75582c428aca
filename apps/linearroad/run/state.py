"""The state of a run at the end of a minute: kept on disk, and gone on from by many copies.

What is kept are the arrays of the kernels, by expressway; a copy begins with those of its original,
its vehicles renumbered. A run that goes on gives the answers that it would have given without a
break. `state.json` lists every file with its size and checksum and is written last. What is read is
checked against it, and against what the kernels rely on (`invariants`).
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
    shifted_accidents,
    shifted_accounts,
    shifted_vehicles,
)
from linearroad.run.copies import Copy
from linearroad.run.engine import Engine
from linearroad.run.invariants import Limits, check_state
from xstream.errors import InputError
from xstream.io.saved_arrays import Arrays, read_arrays, write_arrays

__all__ = ["KeptState", "keep_state", "read_state"]

VERSION = 4
META = "state.json"
ACCOUNTS = "accounts"
MOST_MINUTES = 2**31 // 60
#: Kernels of each expressway that keep something; accounts are kept for all of them together.
BY_EXPRESSWAY = ("vehicles", "accidents", "segment statistics", "tolls")

_SHIFTED: dict[str, Callable[[Arrays, int, int], Arrays]] = {
    "vehicles": shifted_vehicles,
    "accidents": shifted_accidents,
    ACCOUNTS: shifted_accounts,
}


def keep_state(directory: Path, source: Path, engine: Engine, minute: int) -> None:
    """Write down what the kernels keep at the end of a minute, of a run over generated traffic."""
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
    """The kernels whose state is kept."""
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
    """What must be equal for a state to fit: the parameters and the totals of the traffic."""
    manifest = read_manifest(source)
    return {"parameters": manifest["parameters"], "totals": manifest["totals"]}


def kernels_of(engine: Engine) -> Iterator[tuple[str, Copy, xs.Stream]]:
    """The kernels that keep something: their originals' names, and which copies they are of."""
    for c, copy in enumerate(engine.copies):
        for feed, parts in zip(engine.feeds, engine.parts, strict=True):
            for kernel in BY_EXPRESSWAY:
                yield f"{kernel} {feed.number}", copy, parts[c].kept[kernel]
        yield f"{ACCOUNTS} 0", copy, engine.accounts[c]


class InitialState(Mapping[xs.Stream, xs.KernelState]):
    """What each kernel of a query begins with, worked out when it is asked for."""

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
        """What the kernels of a query begin with; what was read is shared."""
        return InitialState(engine, self.originals)


def read_state(directory: Path, source: Path) -> KeptState:
    """A state that `keep_state` wrote of this traffic; all of it is read and checked."""
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
    """The arrays of all kernels, or a sentence about the first that is not what it must be."""
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
