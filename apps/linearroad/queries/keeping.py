"""The state of a run at the end of a minute: kept on disk, and gone on from by many copies.

What is kept are the arrays of the kernels, by expressway; a copy begins with those of its original,
its vehicles renumbered. A run that goes on gives the answers that it would have given without a
break.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.files import whole
from linearroad.manifest import read_json, read_manifest, write_json
from linearroad.queries.copying import Copy
from linearroad.queries.operators.copies import (
    shifted_accidents,
    shifted_accounts,
    shifted_vehicles,
)
from xstream.errors import InputError

__all__ = ["KeptState", "keep_state", "read_state"]

VERSION = 2
META = "state.json"
ACCOUNTS = "accounts"
#: Kernels of each expressway that keep something; accounts are kept for all of them together.
BY_EXPRESSWAY = ("vehicles", "accidents", "segment statistics", "tolls")

Arrays = dict[str, NDArray[Any]]
_SHIFTED: dict[str, Callable[[Arrays, int, int], Arrays]] = {
    "vehicles": shifted_vehicles,
    "accidents": shifted_accidents,
    ACCOUNTS: shifted_accounts,
}


def keep_state(directory: Path, source: Path, run: xs.Run, expressways: int, minute: int) -> None:
    """Write down what the kernels keep at the end of a minute, of a run over generated traffic."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / META).unlink(missing_ok=True)
        for xway in range(expressways):
            for kernel in BY_EXPRESSWAY:
                _write(directory, f"{kernel} {xway}", run.state(f"{kernel} {xway}"))
        _write(directory, f"{ACCOUNTS} 0", run.state(f"{ACCOUNTS} 0"))
        meta = {"version": VERSION, "minute": minute, "traffic": _traffic(source)}
        write_json(directory / META, meta)
    except OSError as error:
        raise InputError(f"{directory} cannot be written: {error.strerror}") from error


def _write(directory: Path, name: str, arrays: Arrays) -> None:
    path = directory / f"{name.replace(' ', '-')}.npz"
    with whole(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _traffic(source: Path) -> dict[str, Any]:
    """What must be equal for a state to fit: the parameters and the totals of the traffic."""
    manifest = read_manifest(source)
    return {"parameters": manifest["parameters"], "totals": manifest["totals"]}


class KeptState(Mapping[str, xs.KernelState]):
    """What each kernel of some copies begins with, worked out when it is asked for."""

    def __init__(self, directory: Path, minute: int, expressways: int) -> None:
        self.minute, self._directory, self._base = minute, directory, expressways
        self._names: dict[str, tuple[str, Copy]] = {}
        self._read: dict[str, Arrays] = {}

    def of_copies(self, copies: list[Copy]) -> KeptState:
        """The state for the engine that works on these copies; what was read is shared."""
        found = KeptState(self._directory, self.minute, self._base)
        found._read = self._read
        for copy in copies:
            found._names[f"{ACCOUNTS} {copy.xway_by}"] = f"{ACCOUNTS} 0", copy
            for kernel in BY_EXPRESSWAY:
                for xway in range(self._base):
                    found._names[f"{kernel} {copy.xway_by + xway}"] = f"{kernel} {xway}", copy
        return found

    def __getitem__(self, name: str) -> xs.KernelState:
        original, copy = self._names[name]
        arrays = self._original(original)
        shifted = _SHIFTED.get(original.rpartition(" ")[0])
        return shifted(arrays, copy.vid_by, copy.xway_by) if shifted else arrays

    def _original(self, name: str) -> Arrays:
        if name not in self._read:
            path = self._directory / f"{name.replace(' ', '-')}.npz"
            try:
                with np.load(path, allow_pickle=False) as file:
                    self._read[name] = {key: file[key] for key in file.files}
            except (OSError, ValueError, zipfile.BadZipFile) as error:
                raise InputError(f"{path} cannot be read: {error}") from error
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def read_state(directory: Path, source: Path) -> KeptState:
    """A state that `keep_state` wrote of this traffic."""
    if not (directory / META).is_file():
        raise InputError(f"{directory} holds no state: `run --keep-state` writes one")
    meta = read_json(directory / META)
    if meta.get("version") != VERSION:
        raise InputError(
            f"{directory} is a state of version {meta.get('version')}, not {VERSION}: keep it anew"
        )
    if meta.get("traffic") != _traffic(source):
        raise InputError(f"{directory} is the state of other traffic than {source}")
    return KeptState(
        directory, int(meta["minute"]), int(meta["traffic"]["parameters"]["expressways"])
    )
