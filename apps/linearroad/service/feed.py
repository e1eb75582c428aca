"""The rows of a driver as input of the query."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import xstream as xs
from linearroad.input import Chunk, Reject
from linearroad.rowforms import PAPER, RowForm
from linearroad.run.feed import NO_ROWS, Feed, raw_rows
from linearroad.schema import TIME, TYPE, XWAY
from linearroad.service.door import Door
from linearroad.service.recent import RecentAnswers
from linearroad.wire.connection import Connection, WireError
from linearroad.wire.format import MARK, Block, Wire
from linearroad.wire.resumption import asks_to_resume, read_numbers, resume_line
from xstream.console.stop import Stop
from xstream.io.clock import StreamTime
from xstream.io.paced_rows import UNKNOWN
from xstream.io.schedule import Schedule

__all__ = ["DriverFeed", "RejectCount", "Visitor", "without_marks"]


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

    def save_state(self) -> dict[str, Any]:
        """All counts."""
        return {reason: list(found) for reason, found in self._found.items()}

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._found = {reason: (int(count), int(first)) for reason, (count, first) in saved.items()}

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


@dataclass(frozen=True)
class Visitor:
    """A driver that has connected, and whether it asks to go on where it was cut."""

    connection: Connection
    resumes: bool


class DriverFeed(Feed):
    """The rows of the next driver. The query is compiled before it waits for one.

    A query that was loaded from a checkpoint serves only the driver that asks to go on; another
    one is left to the next query (`left`).
    """

    def __init__(
        self, door: Door, wire: Wire, manager: xs.MemoryManager, stop: Stop,
        ready: Callable[[], None], form: RowForm = PAPER,
    ) -> None:  # fmt: skip
        self.count = RejectCount()
        super().__init__(_DriverRows(form), 0, Schedule(StreamTime(None)), self.count, manager)
        self._door, self._wire, self._stop, self._ready = door, wire, stop, ready
        #: The driver, once it is there; the one to begin with, if it is there already.
        self.connection: Connection | None = None
        self.first: Visitor | None = None
        self.left: Visitor | None = None
        #: Whether the state is that of a checkpoint.
        self.loaded = False
        #: The answers that were sent, and what sends those behind a number once more.
        self.answers = RecentAnswers(keeps=False)
        self.send_again: Callable[[Connection, int], None] = lambda connection, number: None
        #: Whether a stop suspends the query, which then goes on from a checkpoint.
        self.suspends = False

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """Raw rows (`RAW`) of one driver, from its connection to its end."""
        nothing = raw_rows(NO_ROWS, UNKNOWN, self.manager)
        none = tuple(self._wire.no_rows())
        self.reader.form.times(none, 0)  # compiled before the first rows arrive
        self._expressways.add(none[XWAY])
        self._ready()
        visitor = yield from self._visitor(nothing)
        if visitor is None:
            return
        if self.loaded and not visitor.resumes:
            self.left = visitor
            return
        self.connection = visitor.connection
        if visitor.resumes:
            yield from self._go_on(visitor.connection, nothing)
        for block in self._wire.rows(self.connection, self._reject):
            if self._stop.is_set() and not self.suspends:
                return
            if block is None:
                yield nothing
                continue
            for rows, upto in without_marks(block):
                yield raw_rows(self._chunk(rows), upto, self.manager)
        yield raw_rows(NO_ROWS, self._clock, self.manager)  # completes the last second

    def _visitor(
        self, nothing: tuple[Any, ...]
    ) -> Generator[tuple[Any, ...], None, Visitor | None]:
        """The next driver, as soon as it has sent something; None if the service is stopped."""
        visitor, connection = self.first, None
        while visitor is None:
            if self._stop.is_set():
                if connection is not None:
                    self.left = Visitor(connection, False)
                return None
            connection = connection or self._door.driver()
            if connection is not None and (resumes := asks_to_resume(connection)) is not None:
                return Visitor(connection, resumes)
            yield nothing
        return visitor

    def _go_on(self, connection: Connection, nothing: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """Agree with a driver on where to go on."""
        asked = read_numbers(connection, 1)
        while True:
            try:
                next(asked)
            except StopIteration as found:
                (held,) = found.value
                break
            yield nothing
        if held < self.answers.first:
            raise WireError(
                f"{connection.name} has {held:,} answers, and of the {self.answers.sent:,} before "
                f"the checkpoint only those behind {self.answers.first:,} can be sent again"
            )
        following = min(held, self.answers.sent)
        connection.send(resume_line(self.rows, following))
        self.send_again(connection, following)

    # -- checkpoints -------------------------------------------------------------------------

    def save_state(self) -> dict[str, Any]:
        """The rows that were given, and what was rejected."""
        return {"rows": self.rows, "clock": self._clock, "rejects": self.count.save_state()}

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Go on behind these rows."""
        self.rows, self._clock = int(saved["rows"]), int(saved["clock"])
        self.count.load_state(saved["rejects"])
        self.loaded = True

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
