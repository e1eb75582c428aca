"""The flat wire: rows of fifteen numbers and answers, one per line of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linearroad.schema import FIELDS, LINE_TOO_LONG, REASONS
from linearroad.tables.text import format_answers, parse
from linearroad.wire._kernels import format_rows, parse_answers
from linearroad.wire.connection import Connection, Cut
from linearroad.wire.format import ERROR, Answers, Block, Unended, other_side_failed, pieces

__all__ = ["Flat", "answer_lines"]

ROWS = 1 << 15  # per block
ROW_BYTES = 12 * FIELDS  # of the longest line
ANSWER_BYTES = 80
MOST_LINE_BYTES = 1 << 16  # a longer line is skipped
BUFFER_BYTES = 1 << 20
MOST_SHOWN = 200  # bytes of a line that is bad


class _Text:
    """Whole lines of a connection: a buffer whose beginning is given away."""

    def __init__(self, connection: Connection | None) -> None:
        self._connection = connection
        self.bytes = np.empty(BUFFER_BYTES, np.uint8)
        self.filled, self.ended = 0, False

    def more(self) -> bool:
        """Receive more bytes; returns whether there are any, or the end was reached."""
        assert self._connection is not None
        count = self._connection.receive(self.bytes[self.filled :].data)
        if count is None:
            return False
        self.ended = count == 0
        self.filled += count
        return True

    def drop(self, used: int) -> None:
        """Give away the beginning."""
        self.bytes[: self.filled - used] = self.bytes[used : self.filled].copy()
        self.filled -= used

    def line(self, begin: int, end: int) -> str:
        """A line as text, shortened."""
        shown = (
            self.bytes[begin : min(end, begin + MOST_SHOWN)].tobytes().decode("ascii", "replace")
        )
        return shown + (f"... ({end - begin:,} bytes)" if end - begin > MOST_SHOWN else "")


class Flat(Unended):
    """Lines of text."""

    name, rules, marks = "flat", "paper", False

    def row_encoder(self) -> Callable[[Block], Iterator[Any]]:
        """A function from rows to lines."""

        def encode(block: Block) -> Iterator[Any]:
            for part in pieces(block, ROWS):
                text = np.empty(ROW_BYTES * part.shape[1], np.uint8)
                yield text[: format_rows(text, part)]

        return encode

    def rows(
        self, connection: Connection, on_reject: Callable[[int, str, str], None]
    ) -> Iterator[Block | None]:
        """Rows as they arrive, in blocks; a line that is no row is rejected."""
        text, number, skips = _Text(connection), 1, False
        while True:
            if not text.more():
                yield None
                continue
            if text.ended and text.filled:
                raise Cut(
                    f"{connection.name} ended within a line of {text.filled} bytes, row {number:,}"
                )
            if text.ended:
                return
            if skips:
                skips = not self._skip(text)
            while not skips:
                block, lines = self._parsed(text, number, on_reject)
                number += lines
                if block.shape[1]:
                    yield block
                if not lines:
                    break
            if text.filled > MOST_LINE_BYTES:
                shown = text.line(0, text.filled)
                on_reject(number, REASONS[LINE_TOO_LONG], shown)
                number, skips, text.filled = number + 1, True, 0

    @staticmethod
    def _skip(text: _Text) -> bool:
        """Drop the rest of a line; returns whether its end was found."""
        ends = np.flatnonzero(text.bytes[: text.filled] == ord("\n"))
        text.drop(int(ends[0]) + 1 if len(ends) else text.filled)
        return bool(len(ends))

    @staticmethod
    def _parsed(
        text: _Text, number: int, on_reject: Callable[[int, str, str], None]
    ) -> tuple[Block, int]:
        """The rows of the whole lines received, and the number of lines; they are dropped."""
        columns = np.empty((FIELDS, ROWS), np.int32)
        starts, bad = np.empty(ROWS + 1, np.int64), np.empty(ROWS, np.int64)
        reasons = np.empty(ROWS, np.int8)
        used, lines, good, wrong = parse(
            text.bytes, text.filled, False, columns, starts, bad, reasons
        )
        for line, reason in zip(bad[:wrong].tolist(), reasons[:wrong].tolist(), strict=True):
            shown = text.line(int(starts[line]), int(starts[line + 1]) - 1)
            on_reject(number + line, REASONS[reason], shown)
        text.drop(used)
        columns.flags.writeable = False
        return columns[:, :good], lines

    def no_rows(self) -> Block:
        """No rows, as `rows` gives them; compiles what parses rows."""
        return self._parsed(_Text(None), 1, lambda *_: None)[0]

    def answer_encoder(self) -> Callable[..., Iterator[Any]]:
        """A function from answers to lines; their Emit is their Time."""

        def encode(*columns: NDArray[Any]) -> Iterator[Any]:
            kind, time, who, value, amount = columns
            emit = 1000 * time.astype(np.int64)
            text = np.empty(ANSWER_BYTES * len(kind), np.uint8)
            yield text[: format_answers(text, kind, time, emit, who, value, amount)]

        return encode

    def answers(self, connection: Connection) -> Iterator[Answers | None]:
        """Answers as they arrive; a line that is no answer is malformed."""
        text = _Text(connection)
        while True:
            if not text.more():
                yield None
                continue
            if text.filled == BUFFER_BYTES and not (text.bytes == ord("\n")).any():
                raise Cut(f"{connection.name} sent a line of more than {BUFFER_BYTES:,} bytes")
            first = text.bytes[: text.filled].tobytes()[: len(ERROR)]
            if first == ERROR and (text.bytes[: text.filled] == ord("\n")).any():
                raise other_side_failed(connection, text.bytes[: text.filled].tobytes())
            while len(found := self._answers(text)) or found.malformed:
                yield found
            if text.ended and text.filled:
                raise Cut(f"{connection.name} ended within a line of {text.filled} bytes")
            if text.ended:
                return

    @staticmethod
    def _answers(text: _Text) -> Answers:
        most = min(ROWS, text.filled // 8 + 1)  # the shortest answer has more bytes
        kind, amount = np.empty(most, np.int8), np.empty(most, np.int64)
        time, who, value = (np.empty(most, np.int32) for _ in range(3))
        bad = np.empty((most, 2), np.int64)
        columns = (kind, time, who, value, amount)
        used, good, wrong = parse_answers(text.bytes, text.filled, columns, bad)
        malformed = [text.line(begin, end) for begin, end in bad[:wrong].tolist()]
        text.drop(used)
        return Answers(kind[:good], time[:good], who[:good], value[:good], amount[:good], malformed)

    def no_answers(self) -> Answers:
        """No answers, as `answers` gives them; compiles what parses answers."""
        return self._answers(_Text(None))

    def lines(self, answers: Answers, arrival_ms: int) -> NDArray[np.uint8]:
        """The answers as lines, with the time of arrival as Emit."""
        return answer_lines(answers, arrival_ms)


def answer_lines(answers: Answers, arrival_ms: int) -> NDArray[np.uint8]:
    """Answers in the format of `output.csv`, with the time of arrival as Emit."""
    emit = np.full(len(answers), arrival_ms, np.int64)
    text = np.empty(ANSWER_BYTES * len(answers), np.uint8)
    used = format_answers(
        text, answers.kind, answers.time, emit, answers.who, answers.value, answers.amount
    )
    return text[:used]
