"""The Arrow wire: IPC streams of record batches in both directions.

Frames are taken apart here, so that the sizes they announce are checked before memory is allocated;
pyarrow decodes their contents. A frame is `0xFFFFFFFF`, the length of its metadata, the metadata (a
flatbuffer that says how long the body is), and the body.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from linearroad.files import int32_schema
from linearroad.schema import FIELDS, INPUT_COLUMNS, KINDS
from linearroad.wire.connection import Connection, Cut, WireError, read_exactly
from linearroad.wire.flat import answer_lines
from linearroad.wire.format import (
    ERROR,
    MOST_ERROR_BYTES,
    Answers,
    Block,
    other_side_failed,
    pieces,
)

__all__ = ["ANSWER_SCHEMA", "ROW_SCHEMA", "Arrow"]

ROW_SCHEMA = int32_schema(INPUT_COLUMNS)
ANSWER_SCHEMA = pa.schema(
    [
        pa.field("type", pa.int8(), nullable=False),
        *(pa.field(name, pa.int32(), nullable=False) for name in ("time", "who", "value")),
        pa.field("amount", pa.int64(), nullable=False),
    ]
)
#: Rows of a batch that is sent: small enough for the caches of both sides.
ROWS = 1 << 16
#: The largest frames that are accepted: of metadata, and of a body (4 million rows).
MOST_METADATA, MOST_BODY = 1 << 20, 1 << 28
_CONTINUES = 0xFFFFFFFF
_SCHEMA, _BATCH = 1, 3  # types of messages


class _Frame(NamedTuple):
    """A frame: the type of its message, and all of its bytes, until the next frame is read."""

    type: int
    data: NDArray[np.uint8]


class _Memory:
    """Memory for one frame after the other: fresh memory for each costs more than reading it."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def room(self, size: int) -> NDArray[np.uint8]:
        """So many bytes, those of the last call included."""
        if size > len(self._bytes):
            self._bytes = np.empty(size + size // 4, np.uint8)
        return self._bytes[:size]


class Arrow:
    """Arrow IPC streams."""

    name, rules, marks = "arrow", "paper", True

    def row_encoder(self) -> Callable[[Block], Iterator[Any]]:
        """A function from rows to buffers of a stream."""
        sink = _Buffers()
        writer = pa.ipc.new_stream(pa.PythonFile(sink, "w"), ROW_SCHEMA)

        def encode(block: Block) -> Iterator[Any]:
            for part in pieces(block, ROWS):
                columns = [pa.Array.from_buffers(pa.int32(), part.shape[1],
                           [None, pa.py_buffer(column)]) for column in part]  # fmt: skip
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=ROW_SCHEMA))
                yield from sink.taken()

        return encode

    def answer_encoder(self) -> Callable[..., Iterator[Any]]:
        """A function from answers to buffers of a stream."""
        sink = _Buffers()
        writer = pa.ipc.new_stream(pa.PythonFile(sink, "w"), ANSWER_SCHEMA)

        def encode(*columns: NDArray[Any]) -> Iterator[Any]:
            for begin in range(0, max(len(columns[0]), 1), MOST_ANSWERS):
                part = [pa.array(column[begin : begin + MOST_ANSWERS]) for column in columns]
                writer.write_batch(pa.RecordBatch.from_arrays(part, schema=ANSWER_SCHEMA))
                yield from sink.taken()

        return encode

    def last_rows(self) -> bytes:
        """The end of a stream."""
        return struct.pack("<II", _CONTINUES, 0)

    last_answers = last_rows

    def rows(
        self, connection: Connection, on_reject: Callable[[int, str, str], None]
    ) -> Iterator[Block | None]:
        """Rows by batch. Nothing can be rejected here: a batch is right or ends the connection."""
        for batch in _batches(connection, ROW_SCHEMA):
            if batch is None:
                yield None
                continue
            columns = [batch.column(i).to_numpy() for i in range(FIELDS)]
            yield _as_block(columns)

    def no_rows(self) -> Block:
        """No rows, as `rows` gives them."""
        return _as_block([np.empty(0, np.int32)] * FIELDS)

    def answers(self, connection: Connection) -> Iterator[Answers | None]:
        """Answers by batch; those of an unknown type are malformed."""
        for batch in _batches(connection, ANSWER_SCHEMA):
            if batch is None:
                yield None
                continue
            columns = [batch.column(i).to_numpy() for i in range(len(ANSWER_SCHEMA))]
            known = (columns[0] >= 0) & (columns[0] < KINDS)
            malformed: list[str] = []
            if not known.all():
                wrong = batch.filter(pa.array(~known)).to_pylist()
                malformed = [",".join(map(str, row.values())) for row in wrong]
                columns = [column[known] for column in columns]
            kind, time, who, value, amount = columns
            yield Answers(kind, time, who, value, amount, malformed)

    def no_answers(self) -> Answers:
        """No answers, as `answers` gives them."""
        kind, amount = np.empty(0, np.int8), np.empty(0, np.int64)
        time, who, value = (np.empty(0, np.int32) for _ in range(3))
        return Answers(kind, time, who, value, amount)

    def lines(self, answers: Answers, arrival_ms: int) -> NDArray[np.uint8]:
        """The answers as lines, with the time of arrival as Emit."""
        return answer_lines(answers, arrival_ms)


MOST_ANSWERS = 1 << 20  # of a batch


def _as_block(columns: list[NDArray[np.int32]]) -> Block:
    """Columns as one array, without a copy if they lie one behind the other."""
    rows, first = len(columns[0]), columns[0].ctypes.data
    adjacent = all(column.ctypes.data == first + 4 * rows * i for i, column in enumerate(columns))
    if not adjacent or not rows:
        block = np.stack(columns)
        block.flags.writeable = False
        return block
    return np.lib.stride_tricks.as_strided(
        columns[0], (FIELDS, rows), (4 * rows, 4), writeable=False
    )


class _Buffers:
    """A file that keeps what is written until it is taken, without a copy."""

    closed = False

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def write(self, data: Any) -> int:
        """Keep a buffer."""
        self._kept.append(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing."""

    def taken(self) -> list[Any]:
        """What has been written since the last call."""
        taken, self._kept = self._kept, []
        return taken


def _batches(connection: Connection, schema: Any) -> Iterator[Any]:
    """The batches of a stream that must have a schema; None while nothing has arrived."""
    known, memory = False, _Memory()
    while True:
        frame = yield from _frame(connection, memory)
        if frame is None:
            return
        try:
            message = pa.ipc.read_message(pa.py_buffer(frame.data))
            if not known:
                _check_schema(connection, message, frame.type, schema)
                known = True
                continue
            if frame.type != _BATCH:
                raise WireError(f"{connection.name} sent a message that is not a record batch")
            batch = pa.ipc.read_record_batch(message, schema)
            batch.validate()
            if any(column.null_count for column in batch.columns):
                raise WireError(f"{connection.name} sent nulls")
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, WireError):
                raise
            raise WireError(f"{connection.name} sent an invalid Arrow frame: {error}") from error
        yield batch


def _check_schema(connection: Connection, message: Any, kind: int, schema: Any) -> None:
    if kind != _SCHEMA:
        raise WireError(f"{connection.name} sent a record batch before the schema")
    given = pa.ipc.read_schema(message)
    fields = [(field.name, field.type) for field in given]
    wanted = [(field.name, field.type) for field in schema]
    if fields != wanted:
        told = ", ".join(f"{name} {kind}" for name, kind in wanted)
        raise WireError(f"{connection.name} sent a stream of other columns than {told}")


def _frame(connection: Connection, memory: _Memory) -> Generator[None, None, _Frame | None]:
    """The next frame; None at the end of the stream."""
    prefix = bytearray(8)
    got = yield from read_exactly(connection, memoryview(prefix), within_frame=False)
    if not got:
        return None
    if bytes(prefix[:4]) == ERROR[:4]:
        rest = bytearray(MOST_ERROR_BYTES)
        more = yield from read_exactly(connection, memoryview(rest), within_frame=True)
        raise other_side_failed(connection, bytes(prefix[:got] + rest[:more]))
    if got < 8:
        raise Cut(f"{connection.name} ended within the length of a frame")
    mark, length = struct.unpack("<II", prefix)
    if mark != _CONTINUES:
        raise WireError(f"{connection.name} sent bytes that are not an Arrow IPC stream")
    if not length:
        return None
    if length > MOST_METADATA:
        raise WireError(
            f"{connection.name} announced {length:,} bytes of metadata; at most "
            f"{MOST_METADATA:,} are accepted"
        )
    metadata = bytearray(length)
    got = yield from read_exactly(connection, memoryview(metadata), within_frame=True)
    if got < length:
        raise Cut(
            f"{connection.name} ended within a frame, {got:,} of {length:,} bytes of metadata"
        )
    kind, body = _announced(connection, bytes(metadata))
    data = memory.room(8 + length + body)
    data[:8], data[8 : 8 + length] = prefix, metadata
    got = yield from read_exactly(connection, data[8 + length :].data, within_frame=True)
    if got < body:
        raise Cut(f"{connection.name} ended within a frame, {got:,} of {body:,} bytes of its body")
    return _Frame(kind, data)


def _announced(connection: Connection, metadata: bytes) -> tuple[int, int]:
    """The type of a message and the length of its body, by its metadata."""
    try:
        message = _root(metadata)
        kind = _scalar(metadata, message, 1, "<B")
        body = _scalar(metadata, message, 3, "<q")
        if kind == _BATCH:
            header = _field(metadata, message, 2)
            batch = header + struct.unpack_from("<I", metadata, header)[0] if header else 0
            if batch and _field(metadata, batch, 3):
                raise WireError(f"{connection.name} sent a compressed batch, which is not accepted")
    except struct.error:
        raise WireError(f"{connection.name} sent an invalid Arrow frame") from None
    if not 0 <= body <= MOST_BODY:
        raise WireError(
            f"{connection.name} announced a frame of {body:,} bytes; at most {MOST_BODY:,} are "
            "accepted"
        )
    return kind, body


def _root(data: bytes) -> int:
    """The place of the root table of a flatbuffer."""
    return int(struct.unpack_from("<I", data, 0)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """The place of a field of a table, or 0 if it has its default."""
    shape = table - struct.unpack_from("<i", data, table)[0]
    if shape < 0:
        raise struct.error
    size = struct.unpack_from("<H", data, shape)[0]
    if size < 6 + 2 * number:
        return 0
    offset = struct.unpack_from("<H", data, shape + 4 + 2 * number)[0]
    return table + offset if offset else 0


def _scalar(data: bytes, table: int, number: int, form: str) -> int:
    place = _field(data, table, number)
    return int(struct.unpack_from(form, data, place)[0]) if place else 0
