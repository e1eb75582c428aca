"""The manifest, and the receipts of tasks from which it is assembled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from linearroad.files import checksum, whole
from linearroad.generation.layout import Layout
from linearroad.generation.parameters import TrafficParameters
from xstream.errors import InputError

__all__ = [
    "Entry",
    "check_file",
    "check_parameters",
    "check_sizes",
    "file_entry",
    "finished",
    "read_json",
    "read_manifest",
    "write_json",
    "write_receipt",
]

Entry = dict[str, Any]
MANIFEST_VERSION = 1


def write_json(path: Path, value: Entry) -> None:
    """Write JSON under a temporary name, then rename."""
    with whole(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def read_json(path: Path) -> Entry:
    """Read a JSON object; raises InputError if the file does not contain one."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} is not a JSON object")
    return value


def read_manifest(root: Path) -> Entry:
    """The manifest of a complete generated directory; raises InputError otherwise."""
    manifest = _parsed(root)
    if manifest.get("complete") is not True:
        raise InputError(
            f"{root} is not complete: run the same `linearroad generate` again to finish it"
        )
    parameters = manifest.get("parameters")
    expressways = parameters.get("expressways") if isinstance(parameters, dict) else None
    if type(expressways) is not int or expressways < 1:
        raise InputError(f"{Layout(root).manifest} does not say how many expressways there are")
    return manifest


def _parsed(root: Path) -> Entry:
    """The manifest of a directory that may still be incomplete."""
    path = Layout(root).manifest
    if not path.is_file():
        raise InputError(
            f"{root} has no manifest.json: it was not created by `linearroad generate`"
        )
    manifest = read_json(path)
    if manifest.get("version") != MANIFEST_VERSION:
        raise InputError(f"{path} has version {manifest.get('version')}, not {MANIFEST_VERSION}")
    return manifest


def rating_l(manifest: Entry) -> float:
    """The L of generated traffic: the number of expressways, of which the last may be half."""
    parameters = manifest["parameters"]
    return int(parameters["expressways"]) - (0.5 if parameters.get("half") else 0.0)


def check_parameters(root: Path, parameters: TrafficParameters) -> Entry:
    """The manifest to continue with: a new one, or that of an earlier run with equal parameters."""
    wanted = parameters.as_dict()
    if not Layout(root).manifest.exists():
        if root.is_dir() and any(root.iterdir()):
            raise InputError(f"{root} is not empty and was not created by `linearroad generate`")
        return {"version": MANIFEST_VERSION, "parameters": wanted, "complete": False}
    manifest = _parsed(root)
    made_with = manifest.get("parameters", {})
    for name in {**made_with, **wanted}:
        value = wanted.get(name)
        if made_with.get(name) != value:
            raise InputError(
                f"{root} was generated with {name} {made_with.get(name)}, not {value}: "
                "choose another directory"
            )
    return manifest


def file_entry(root: Path, path: Path) -> Entry:
    """The entry of a file in the manifest."""
    return {
        "file": path.relative_to(root).as_posix(),
        "bytes": path.stat().st_size,
        "sha256": checksum(path),
    }


def check_file(path: Path, entry: Entry | None, list_name: str) -> None:
    """Refuse a file whose contents differ from its entry.

    `list_name` is the file with the entry: the manifest, or that of a saved state.
    """
    if entry is None or type(entry.get("bytes")) is not int:
        raise InputError(f"{path} is not listed in {list_name}")
    if not path.is_file():
        raise InputError(f"{path} is missing, and {list_name} lists it")
    try:
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise InputError(f"{path} has {size:,} bytes, and {list_name} lists {entry['bytes']:,}")
        if checksum(path) != entry.get("sha256"):
            raise InputError(f"{path} is damaged: its checksum differs from the one in {list_name}")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def check_sizes(root: Path, entries: list[Entry]) -> None:
    """Refuse listed files that are missing or have another size; their contents are not read."""
    for entry in entries:
        if not finished(root, entry):
            raise InputError(
                f"{root / entry['file']} is missing, or its size differs from that in the manifest"
            )


def write_receipt(path: Path, entry: Entry) -> Entry:
    """Record that a task is done, after its files have been renamed."""
    write_json(path, entry)
    path.with_suffix(".done").unlink(missing_ok=True)
    return entry


def finished(root: Path, entry: Entry | None) -> bool:
    """Whether all files of an entry exist in full length."""
    if entry is None:
        return False
    files = entry.get("files", [entry])
    for file in files:
        path = root / file["file"]
        if not path.is_file() or path.stat().st_size != file["bytes"]:
            return False
    return True
