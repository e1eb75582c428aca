"""The thesis' wire: rows of nine and answers of five little-endian int32, without lengths.

Answers carry no times, so `output.csv` has `Arrival,Type,f1,f2,f3,f4`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linearroad.schema import FIELDS, KINDS
from linearroad.wire._kernels import (
    ANSWER_FIELDS,
    TUPLE_FIELDS,
    answers_of_tuples,
    format_arrivals,
    of_tuples,
    to_tuples,
    tuples_of_answers,
)
from linearroad.wire.connection import Connection, Cut
from linearroad.wire.format import (
    ERROR,
    MOST_ERROR_BYTES,
    Answers,
    Block,
    Unended,
    other_side_failed,
    pieces,
)

__all__ = ["Thesis", "TupleAnswers"]

ROWS = 1 << 15  # per block
LINE_BYTES = 12 * ANSWER_FIELDS + 20
_ERROR_TYPE = int.from_bytes(ERROR[:4], "little")

#: Tuples, one per row of the array.
Tuples = NDArray[np.int32]


@dataclass(frozen=True)
class TupleAnswers(Answers):
    """Answers, and their tuples of five numbers, which say more of an alert than the columns."""

    tuples: Tuples = field(default_factory=lambda: np.empty((0, ANSWER_FIELDS), np.int32))


class Thesis(Unended):
    """Tuples of fixed length."""

    name, rules, marks = "thesis", "thesis", False

    def row_encoder(self) -> Callable[[Block], Iterator[Any]]:
        """A function from rows of the thesis to tuples."""

        def encode(block: Block) -> Iterator[Any]:
            for part in pieces(block, ROWS):
                tuples = np.empty((part.shape[1], TUPLE_FIELDS), np.int32)
                to_tuples(part, tuples)
                yield tuples.astype("<i4", copy=False)

        return encode

    def rows(
        self, connection: Connection, on_reject: Callable[[int, str, str], None]
    ) -> Iterator[Block | None]:
        """Rows as they arrive, in blocks. Any nine numbers are a row; the query checks them."""
        for tuples in _tuples(connection, TUPLE_FIELDS):
            if tuples is None:
                yield None
                continue
            yield _block(tuples)

    def no_rows(self) -> Block:
        """No rows, as `rows` gives them; compiles what decodes rows."""
        return _block(np.empty((0, TUPLE_FIELDS), np.int32))

    def answer_encoder(self) -> Callable[..., Iterator[Any]]:
        """A function from answers by the rules of the thesis to tuples."""

        def encode(*columns: NDArray[Any]) -> Iterator[Any]:
            kind, _, who, value, amount = columns
            tuples = np.empty((len(kind), ANSWER_FIELDS), np.int32)
            tuples_of_answers(kind, who, value, amount, tuples)
            yield tuples.astype("<i4", copy=False)

        return encode

    def answers(self, connection: Connection) -> Iterator[Answers | None]:
        """Answers as they arrive; those of an unknown type are malformed."""
        for tuples in _tuples(connection, ANSWER_FIELDS):
            if tuples is None:
                yield None
                continue
            yield _answers(tuples)

    def no_answers(self) -> Answers:
        """No answers, as `answers` gives them; compiles what decodes answers."""
        return _answers(np.empty((0, ANSWER_FIELDS), np.int32))

    def lines(self, answers: Answers, arrival_ms: int) -> NDArray[np.uint8]:
        """The answers as lines, after their time of arrival."""
        assert isinstance(answers, TupleAnswers)
        text = np.empty(LINE_BYTES * len(answers), np.uint8)
        return text[: format_arrivals(text, answers.tuples, arrival_ms)]


def _block(tuples: Tuples) -> Block:
    block = np.empty((FIELDS, len(tuples)), np.int32)
    of_tuples(tuples, block)
    block.flags.writeable = False
    return block


def _answers(tuples: Tuples) -> TupleAnswers:
    known = (tuples[:, 0] >= 0) & (tuples[:, 0] < KINDS)
    malformed = [",".join(map(str, row)) for row in tuples[~known].tolist()]
    good = tuples if known.all() else tuples[known]
    many = len(good)
    kind, amount = np.empty(many, np.int8), np.empty(many, np.int64)
    who, value = np.empty(many, np.int32), np.empty(many, np.int32)
    answers_of_tuples(good, kind, who, value, amount)
    times = np.full(many, -1, np.int32)
    return TupleAnswers(kind, times, who, value, amount, malformed, good)


def _tuples(connection: Connection, fields: int) -> Iterator[Tuples | None]:
    """Whole tuples of int32 as they arrive; None while there are none."""
    width, filled = 4 * fields, 0
    buffer = np.empty(ROWS * width, np.uint8)
    while True:
        count = connection.receive(buffer[filled:].data)
        if count is None:
            yield None
            continue
        filled += count
        whole = filled // width
        told = buffer[: whole * width].view("<i4").reshape(whole, fields).astype(np.int32)
        errors = np.flatnonzero(told[:, 0] == _ERROR_TYPE)
        ends = count == 0 and buffer[whole * width : filled].tobytes().startswith(ERROR[:4])
        if len(errors) or ends:
            begin = int(errors[0]) if len(errors) else whole
            if begin:
                yield told[:begin]
            line = buffer[begin * width : filled].tobytes()
            raise other_side_failed(connection, line + _rest(connection))
        if whole:
            yield told
        buffer[: filled - whole * width] = buffer[whole * width : filled].copy()
        filled -= whole * width
        if count == 0 and filled:
            raise Cut(f"{connection.name} ended within a tuple, {filled} of {width} bytes")
        if count == 0:
            return


def _rest(connection: Connection) -> bytes:
    """What is left of an error line, which ends the connection."""
    rest = bytearray(MOST_ERROR_BYTES)
    count = connection.receive(memoryview(rest), most_s=1.0)
    return bytes(rest[: count or 0])
