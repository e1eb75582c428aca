"""All expressways in one flat file, merged by time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import BinaryIO

from linearroad.files import whole
from linearroad.generation.layout import Layout

__all__ = ["merge_traffic"]

BUFFER_BYTES = 1 << 20


def _seconds(lines: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of one file, by second."""
    for second, rows in groupby(lines, key=lambda line: int(line.split(b",", 2)[1])):
        yield second, b"".join(rows)


def merge_traffic(
    layout: Layout, expressways: int, at: Callable[[int], None] = lambda second: None
) -> None:
    """Write merged.csv by time and expressway; `at` is called with each second."""
    files = [layout.traffic(x, "csv").open("rb", BUFFER_BYTES) for x in range(expressways)]
    try:
        heads = [(next(seconds, None), seconds) for seconds in map(_seconds, files)]
        with whole(layout.merged) as temporary, temporary.open("wb", BUFFER_BYTES) as out:
            while True:
                times = [head[0] for head, _ in heads if head is not None]
                if not times:
                    break
                now = min(times)
                at(now)
                for i, (head, seconds) in enumerate(heads):
                    if head is not None and head[0] == now:
                        out.write(head[1])
                        heads[i] = (next(seconds, None), seconds)
    finally:
        for file in files:
            file.close()
