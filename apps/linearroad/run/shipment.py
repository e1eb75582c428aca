"""Checkpoints of a task, copied to shared storage, from which another machine goes on.

A task runs in a folder of its machine and takes checkpoints there. Whenever one is complete, it is
copied aside, with what was written to the output since the one before. Then a *point* that lists
the copies is written. A point stands for files that are complete, so a task that replaces a lost
one begins with the latest point; attempts never write to the same file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from linearroad.generation.manifest import Entry, read_json, write_json
from linearroad.storage import BLOCK_BYTES, remove_tree, upload
from xstream.console.background import repeated
from xstream.errors import XStreamError
from xstream.recovery.format import read_checkpoint

__all__ = ["Shipment"]

LOOK_S = 0.25
KEPT = 2
CHECKPOINTS = "checkpoints"


class Shipment:
    """The points of one share: those of earlier attempts, and those of this one.

    `place` is the folder of the share on shared storage, `out` that of the run on this machine, and
    `files` are the names in `out` of the outputs that checkpoints speak of, by their part.
    """

    def __init__(self, place: Path, out: Path, attempt: str, files: dict[str, str]) -> None:
        self.place, self.out, self.attempt, self.files = place, out, attempt, files
        #: The number of points before this one, over all attempts.
        self.sequence = 0
        self.shipped = 0  # by this attempt
        self._pieces: list[Entry] = []  # of outputs, in order
        self._lengths = dict.fromkeys(files.values(), 0)
        self._last = -1  # the number of the last checkpoint that was copied

    def fetch(self) -> bool:
        """Copy what the latest point lists to this machine; returns whether there is one."""
        points = sorted(self.place.glob("*/point-*.json"), key=_sequence, reverse=True)
        for path in points:
            try:
                point = read_json(path)
                self._fetch(point)
            except (OSError, KeyError, XStreamError):
                continue  # the one before may be whole
            self.sequence, self._pieces = int(point["sequence"]), point["pieces"]
            self._last = int(point["number"])
            for piece in self._pieces:
                self._lengths[piece["output"]] = piece["begin"] + piece["bytes"]
            return True
        return False

    def _fetch(self, point: Entry) -> None:
        folder = self.out / CHECKPOINTS
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        _copy(self.place / point["checkpoint"], folder / f"checkpoint-{point['number']:06d}", 0)
        for name in self.files.values():
            (self.out / name).write_bytes(b"")
        for piece in point["pieces"]:
            _copy(self.place / piece["file"], self.out / piece["output"], piece["begin"])

    @contextmanager
    def shipping(self) -> Iterator[None]:
        """Copy checkpoints while the run takes them. An error of storage does not end the run: it
        only goes further back after a loss."""

        def look() -> float:
            with suppress(OSError, XStreamError):  # the next one may succeed
                self.ship()
            return LOOK_S

        with repeated(look, LOOK_S):
            yield

    def ship(self) -> bool:
        """Copy the latest checkpoint, if it has not been copied; returns whether it was."""
        found = sorted((self.out / CHECKPOINTS).glob("checkpoint-*"))
        if not found or (number := int(found[-1].name.removeprefix("checkpoint-"))) <= self._last:
            return False
        lengths = _lengths(read_checkpoint(found[-1]).manifest)
        pieces = list(self._pieces)
        for part, output in self.files.items():
            begin, end = self._lengths[output], lengths.get(part, 0)
            if end > begin:
                file = f"{self.attempt}/{output}-{begin:015d}"
                size = upload(self.out / output, self.place / file, begin, end)
                pieces.append({"output": output, "file": file, "begin": begin, "bytes": size})
        checkpoint = f"{self.attempt}/{found[-1].name}"
        upload(found[-1], self.place / checkpoint)
        sequence = self.sequence + 1
        point = {
            "sequence": sequence, "number": number, "checkpoint": checkpoint, "pieces": pieces,
        }  # fmt: skip
        write_json(self.place / self.attempt / f"point-{sequence:06d}.json", point)
        self.sequence, self._pieces, self._last = sequence, pieces, number
        self._lengths |= {piece["output"]: piece["begin"] + piece["bytes"] for piece in pieces}
        self.shipped += 1
        self._forget(sequence - KEPT)
        return True

    def _forget(self, sequence: int) -> None:
        """Remove a point of this attempt that is no longer needed, then its checkpoint."""
        path = self.place / self.attempt / f"point-{sequence:06d}.json"
        if not path.is_file():
            return
        checkpoint = read_json(path)["checkpoint"]
        path.unlink()
        (self.place / checkpoint).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove all points: the share is complete."""
        remove_tree(self.place)


def _sequence(path: Path) -> int:
    return int(path.stem.removeprefix("point-"))


def _lengths(manifest: dict[str, Any]) -> dict[str, int]:
    """The lengths of outputs that a checkpoint speaks of, by part."""
    for owner in manifest["owners"].values():
        if "parts" in owner:
            parts = owner["parts"].items()
            return {name: int(part["bytes"]) for name, part in parts if "bytes" in part}
    return {}


def _copy(source: Path, target: Path, begin: int) -> None:
    """Copy a file into another at a place."""
    with source.open("rb") as file, target.open("r+b" if target.exists() else "wb") as copied:
        copied.seek(begin)
        while block := file.read(BLOCK_BYTES):
            copied.write(block)
