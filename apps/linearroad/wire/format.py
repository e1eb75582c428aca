"""What every wire can do: encode and decode rows and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from linearroad.schema import FIELDS
from linearroad.wire.connection import Connection, WireError

__all__ = [
    "ERROR",
    "MARK",
    "MOST_ERROR_BYTES",
    "Answers",
    "Block",
    "Unended",
    "Wire",
    "empty_block",
    "error_line",
    "mark",
    "other_side_failed",
    "pieces",
]

#: Rows as an array of fifteen columns (`schema.INPUT_COLUMNS`). Blocks that were received are
#: read-only on every wire, as Arrow's are, because kernels are compiled for one kind of array only.
Block = NDArray[np.int32]

#: The type of a time mark: all rows up to its Time have been sent. No row has this type.
MARK = 1
#: The bytes with which an error line begins, on every wire; no frame begins with them.
ERROR = b"error: "
MOST_ERROR_BYTES = 1000


def empty_block(rows: int = 0) -> Block:
    """Rows to be filled in; all their fields are -1."""
    return np.full((FIELDS, rows), -1, np.int32)


def mark(second: int) -> Block:
    """A time mark as a block of one row."""
    block = empty_block(1)
    block[:2, 0] = MARK, second
    return block


def error_line(sentence: str) -> bytes:
    """A sentence as an error line, which ends a connection."""
    text = " ".join(sentence.split()).encode("ascii", "replace")
    return ERROR + text[: MOST_ERROR_BYTES - len(ERROR) - 1] + b"\n"


def other_side_failed(connection: Connection, line: bytes) -> WireError:
    """The error that an error line of the other side tells."""
    told = line.removeprefix(ERROR).split(b"\n")[0].decode("ascii", "replace").strip()
    return WireError(f"{connection.name} ended the connection: {told}")


@dataclass(frozen=True)
class Answers:
    """Answers that arrived together, by column, with the meanings of `schema.ANSWERS`.

    A balance has its ResultTime as value. `malformed` are the texts of what is no answer.
    """

    kind: NDArray[np.int8]
    #: The second of the row that is answered; -1 if the wire does not tell it.
    time: NDArray[np.int32]
    who: NDArray[np.int32]
    value: NDArray[np.int32]
    amount: NDArray[np.int64]
    malformed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for column in (self.kind, self.time, self.who, self.value, self.amount):
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.kind)

    def behind(self, first: int) -> Self:
        """The answers without the first ones."""
        columns = {
            item.name: getattr(self, item.name)[first:]
            for item in fields(self)
            if item.name != "malformed"
        }
        return replace(self, **columns)


class Unended:
    """A wire on which nothing follows the last rows and answers: the connection's end is theirs."""

    def last_rows(self) -> bytes:
        """Nothing."""
        return b""

    last_answers = last_rows


def pieces(block: Block, rows: int) -> Iterator[Block]:
    """A block in pieces of at most so many rows."""
    for begin in range(0, block.shape[1], rows):
        yield block[:, begin : begin + rows]


class Wire(Protocol):
    """Rows and answers as bytes. Iterators yield None while there is nothing.

    Rows and answers that an iterator yields are valid until the next ones: their memory is reused.
    """

    name: str
    #: The rule set whose rows and answers it carries: that of the paper also stands for those that
    #: have the same rows and answers.
    rules: str
    #: Whether drivers send time marks unless told otherwise.
    marks: bool

    def row_encoder(self) -> Callable[[Block], Iterator[Any]]:
        """A function from rows to buffers to send; each call may refer to those before."""

    def last_rows(self) -> bytes:
        """What follows the last rows."""

    def rows(
        self, connection: Connection, on_reject: Callable[[int, str, str], None]
    ) -> Iterator[Block | None]:
        """The rows that a driver sends; `on_reject` gets number, reason and text of bad ones."""

    def no_rows(self) -> Block:
        """No rows, as `rows` gives them; compiles what decodes rows."""

    def answer_encoder(self) -> Callable[..., Iterator[Any]]:
        """A function from answers (kind, time, who, value, amount) to buffers to send."""

    def last_answers(self) -> bytes:
        """What follows the last answers."""

    def answers(self, connection: Connection) -> Iterator[Answers | None]:
        """The answers that a system sends."""

    def no_answers(self) -> Answers:
        """No answers, as `answers` would give them."""

    def lines(self, answers: Answers, arrival_ms: int) -> NDArray[np.uint8]:
        """The lines of `output.csv` for answers that arrived at a stream time."""
