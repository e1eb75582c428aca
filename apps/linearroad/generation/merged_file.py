"""All expressways in one flat file, merged by time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from linearroad.files import whole
from linearroad.generation.layout import Layout
from linearroad.generation.tasks import note_progress
from linearroad.storage import is_remote

__all__ = ["merge_traffic"]

BUFFER_BYTES = 1 << 20
NOTE_EVERY_S = 10


def _seconds(lines: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of one file, by second."""
    for second, rows in groupby(lines, key=lambda line: int(line.split(b",", 2)[1])):
        yield second, b"".join(rows)


def _opened(path: Path) -> BinaryIO:
    if is_remote(path):
        return io.BufferedReader(path.open("rb"), BUFFER_BYTES)
    return path.open("rb", BUFFER_BYTES)


def merge_traffic(root: Path, expressways: int) -> None:
    """Write merged.csv by time and expressway. This is one task, whose memory does not grow."""
    layout = Layout(root)
    files = [_opened(layout.traffic(x, "csv")) for x in range(expressways)]
    told = -NOTE_EVERY_S
    try:
        heads = [(next(seconds, None), seconds) for seconds in map(_seconds, files)]
        with whole(layout.merged) as temporary, temporary.open("wb") as out:
            while True:
                times = [head[0] for head, _ in heads if head is not None]
                if not times:
                    break
                now = min(times)
                if now >= told + NOTE_EVERY_S:
                    told = now
                    note_progress(layout.progress("merged", 0), now)
                lines = []
                for i, (head, seconds) in enumerate(heads):
                    if head is not None and head[0] == now:
                        lines.append(head[1])
                        heads[i] = (next(seconds, None), seconds)
                out.write(b"".join(lines))
    finally:
        for file in files:
            file.close()
