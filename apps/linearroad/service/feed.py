"""The rows of a driver as input of the query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xstream as xs
from linearroad.input import Chunk, Reject
from linearroad.rowforms import PAPER, RowForm
from linearroad.run.feed import NO_ROWS, Feed, raw_rows
from linearroad.schema import TIME, TYPE, XWAY
from linearroad.service.door import Door
from linearroad.wire.connection import Connection
from linearroad.wire.format import MARK, Block, Wire
from xstream.console.stop import Stop
from xstream.io.clock import StreamTime
from xstream.io.paced_rows import UNKNOWN
from xstream.io.schedule import Schedule

__all__ = ["DriverFeed", "RejectCount", "without_marks"]


class RejectCount:
    """Counts rejected rows by reason, and keeps the number of the first of each."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, int]] = {}

    def write(self, reject: Reject, file_name: str) -> None:
        """Count a reject."""
        count, first = self._found.get(reject.reason, (0, reject.line))
        self._found[reject.reason] = count + 1, first

    def __len__(self) -> int:
        return sum(count for count, _ in self._found.values())

    def sentence(self) -> str:
        """All counts in words."""
        return ", ".join(
            f"{count:,} {reason} (first row {first:,})"
            for reason, (count, first) in sorted(self._found.items())
        )


class _DriverRows:
    """What `Feed` wants to know of its reader; texts of rows are not kept."""

    name = "driver"

    def __init__(self, form: RowForm) -> None:
        self.form = form
        self.on_reject: Callable[[Reject], None] = lambda reject: None

    def chunks(self, begin_s: int = 0) -> Iterator[Chunk]:
        raise NotImplementedError("rows of a driver come from its connection")

    def row(self, line: int) -> str:
        return ""


def without_marks(block: Block) -> Iterator[tuple[Block, int]]:
    """Rows without time marks, and the second up to which all rows have come, if that is known.

    Only the last mark matters: rows of a later second complete all seconds before it.
    """
    marks = np.flatnonzero(block[TYPE] == MARK)
    if not len(marks):
        yield block, UNKNOWN
        return
    last = int(marks[-1])
    upto = max(int(block[TIME, last]), UNKNOWN)
    before, after = block[:, :last], block[:, last + 1 :]
    yield (before if len(marks) == 1 else before[:, before[TYPE] != MARK]), upto
    if after.shape[1]:
        yield after, UNKNOWN


class DriverFeed(Feed):
    """The rows of the next driver. The query is compiled before it waits for one."""

    def __init__(
        self, door: Door, wire: Wire, manager: xs.MemoryManager, stop: Stop,
        ready: Callable[[], None], form: RowForm = PAPER,
    ) -> None:  # fmt: skip
        self.count = RejectCount()
        super().__init__(_DriverRows(form), 0, Schedule(StreamTime(None)), self.count, manager)
        self._door, self._wire, self._stop, self._ready = door, wire, stop, ready
        #: The driver, once it is there.
        self.connection: Connection | None = None
        self._clock = 0

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """Raw rows (`RAW`) of one driver, from its connection to its end."""
        nothing = raw_rows(NO_ROWS, UNKNOWN, self.manager)
        none = tuple(self._wire.no_rows())
        self.reader.form.times(none, 0)  # compiled before the first rows arrive
        self._expressways.add(none[XWAY])
        self._ready()
        while self.connection is None:
            if self._stop.is_set():
                return
            self.connection = self._door.driver()
            yield nothing
        for block in self._wire.rows(self.connection, self._reject):
            if self._stop.is_set():
                return
            if block is None:
                yield nothing
                continue
            for rows, upto in without_marks(block):
                yield raw_rows(self._chunk(rows), upto, self.manager)
        yield raw_rows(NO_ROWS, self._clock, self.manager)  # completes the last second

    def _chunk(self, block: Block) -> Chunk:
        rows = block.shape[1]
        if not rows:
            return NO_ROWS
        columns = tuple(block)
        origins = np.arange(self.rows + 1, self.rows + rows + 1, dtype=np.int64)
        times = self.reader.form.times(columns, self._clock)
        self._clock = int(times[-1])
        self.rows += rows
        self._expressways.add(columns[XWAY])
        return Chunk(columns, origins, times)

    def _reject(self, number: int, reason: str, row: str) -> None:
        self.count.write(Reject(number, reason, row), self.reader.name)
