"""The rows of the input by second, and copies of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from linearroad.input import Chunk, RowReader
from linearroad.run.copies import ORIGINAL, Copy
from linearroad.schema import FIELDS
from linearroad.wire._kernels import shift_rows
from linearroad.wire.format import Block

__all__ = ["Second", "behind", "copied", "seconds"]

ROWS = 1 << 16  # of copies that are made at a time


class Second(NamedTuple):
    """All rows of a second of the stream."""

    second: int
    rows: Block


def seconds(readers: Sequence[RowReader], limit_s: int, begin_s: int = 0) -> Iterator[Second]:
    """The seconds from `begin_s` on that have rows, of all files together, up to `limit_s`."""
    files = [_by_second(reader.chunks(begin_s)) for reader in readers]
    heads = [next(file, None) for file in files]
    while waiting := [head[0] for head in heads if head is not None]:
        second = min(waiting)
        if second >= limit_s:
            return
        parts: list[Chunk] = []
        for place, head in enumerate(heads):
            if head is not None and head[0] == second:
                parts += head[1]
                heads[place] = next(files[place], None)
        if second >= begin_s:
            yield Second(second, _joined(parts))


def _by_second(chunks: Iterator[Chunk]) -> Iterator[tuple[int, list[Chunk]]]:
    """The rows of one file in parts of one second each."""
    second, parts = -1, list[Chunk]()
    for chunk in chunks:
        cuts = np.flatnonzero(np.diff(chunk.times)) + 1
        ends = [*cuts.tolist(), len(chunk)]
        begin = 0
        for end in ends:
            if end > begin:
                time = int(chunk.times[begin])
                if time != second and parts:
                    yield second, parts
                    parts = []
                second = time
                parts.append(chunk.part(begin, end))
            begin = end
    if parts:
        yield second, parts


def _joined(parts: list[Chunk]) -> Block:
    block = np.empty((FIELDS, sum(map(len, parts))), np.int32)
    for field in range(FIELDS):
        np.concatenate([part.columns[field] for part in parts], out=block[field])
    return block


def behind(blocks: Iterator[Block], skipped: int) -> Iterator[Block]:
    """The rows of blocks without the first ones."""
    for block in blocks:
        if skipped < block.shape[1]:
            yield block[:, skipped:]
        skipped = max(skipped - block.shape[1], 0)


def copied(rows: Block, copies: Sequence[Copy]) -> Iterator[Block]:
    """The rows of all copies, one copy after the other, in blocks whose memory is reused."""
    if list(copies) == [ORIGINAL]:
        yield rows
        return
    width = rows.shape[1]
    at_once = max(ROWS // max(width, 1), 1)
    block = np.empty((FIELDS, width * min(at_once, len(copies))), np.int32)
    for begin in range(0, len(copies), at_once):
        some = copies[begin : begin + at_once]
        for place, copy in enumerate(some):
            target = block[:, place * width : (place + 1) * width]
            shift_rows(rows, copy.vid_by, copy.xway_by, copy.qid_by, target)
        yield block[:, : len(some) * width]
