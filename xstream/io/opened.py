"""Files by their suffixes, and files that are read again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xstream.engine.native import NativePlan
from xstream.engine.operator import Operator
from xstream.engine.schema import Schema
from xstream.errors import InputError
from xstream.io.arrow import arrow
from xstream.io.compression import bare_suffix
from xstream.io.csv import csv
from xstream.io.feed import Block, Feed
from xstream.io.file import File
from xstream.io.npy import npy
from xstream.io.parquet import parquet
from xstream.io.raw import raw
from xstream.io.sigmf import sigmf
from xstream.io.wav import wav

__all__ = ["RepeatedFile", "opened"]

_BY_SUFFIX: dict[str, Callable[..., Any]] = {
    ".wav": wav, ".flac": wav, ".ogg": wav, ".csv": csv, ".parquet": parquet, ".arrow": arrow,
    ".arrows": arrow, ".feather": arrow, ".npy": npy, ".raw": raw, ".bin": raw,
    ".sigmf-meta": sigmf, ".sigmf-data": sigmf, ".sigmf": sigmf,
}  # fmt: skip


def opened(path: str | Path, **options: Any) -> File:
    """A file as the source that its suffix names; options are those of that source.

    >>> opened("a.csv.gz", rate_hz=8.0).kind
    'csv'
    """
    suffix = bare_suffix(Path(path)).lower()
    if suffix not in _BY_SUFFIX:
        known = " ".join(sorted(_BY_SUFFIX))
        raise InputError(f"{path}: its suffix names no known format; these do: {known}")
    found: File = _BY_SUFFIX[suffix](Path(path), **options)
    return found


@dataclass(frozen=True, eq=False)
class RepeatedFile(Operator):
    """A file that is read `repeat` times, as one signal; 0: without end."""

    kind = "repeated"
    ports = ()
    file: File
    repeat: int = 1

    @property
    def label(self) -> str:
        return self.file.label

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return self.file.outputs(inputs)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        file, contents = self.file, self.file.contents()
        feed = Feed(
            plan, self._blocks, contents.column_dtypes(file.layout), {},
            row_samples=contents.interleaved, read_ahead=file.read_ahead,
        )  # fmt: skip
        return feed.source(plan, file.native_layout, file.window, file.partial)

    def _blocks(self, row: int) -> Iterator[Block]:
        turn = 0
        while not self.repeat or turn < self.repeat:
            some = False
            for block in self.file.checked_blocks(0):
                some = True
                yield block
            if not some:
                return  # an empty file never ends otherwise
            turn += 1
