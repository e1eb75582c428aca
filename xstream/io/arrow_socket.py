"""`xs.io.arrow("tcp://...")`: an Arrow IPC stream over a TCP connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from xstream.errors import InputError
from xstream.io.connection import LOOK_S, Connector, Reconnect, wait_until_sent
from xstream.io.endpoint import Endpoint, endpoint
from xstream.io.feed import Block
from xstream.io.live import LiveChannel
from xstream.io.output import Columns, Signals
from xstream.io.parquet import one_line
from xstream.io.table import arrow_batch, arrow_schema

__all__ = ["ArrowSocket", "BoundedStream", "batches_of"]

_END = b"\xff\xff\xff\xff\0\0\0\0"


class BoundedStream:
    """A connection as a file for Arrow, which asks for messages by their announced sizes.

    A size above the bound is an error before any memory is allocated for it.
    """

    closed = False

    def __init__(self, connection: socket.socket, most_bytes: int, over: threading.Event) -> None:
        connection.settimeout(LOOK_S)
        self.connection, self.most_bytes, self.over = connection, most_bytes, over
        self.tail = b""

    def readable(self) -> bool:
        """It is only read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Exactly so many bytes, fewer at the end of the connection."""
        if not 0 <= size <= self.most_bytes:
            raise InputError(
                f"the peer announces a message of {size:,} bytes, and max_message_bytes is "
                f"{self.most_bytes:,}"
            )
        found = bytearray(size)
        view, at = memoryview(found), 0
        while at < size and not self.over.is_set():
            try:
                got = self.connection.recv_into(view[at:])
            except TimeoutError:
                continue
            if not got:
                break
            at += got
        data = bytes(view[:at])
        self.tail = (self.tail + data[-8:])[-8:]
        return data

    def close(self) -> None:
        """The connection is closed by its owner."""


def batches_of(stream: BoundedStream, dtypes: dict[str, np.dtype[Any]]) -> Iterator[Block]:
    """The record batches of a stream as columns; its schema has to be the expected one."""
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(pa.PythonFile(stream, mode="r")) as reader:
            expected = {name: pa.from_numpy_dtype(dtype) for name, dtype in dtypes.items()}
            found = {field.name: field.type for field in reader.schema}
            if found != expected or len(reader.schema) != len(expected):
                raise InputError(f"the peer sends {_shown(found)}, and dtype is {_shown(expected)}")
            for batch in reader:
                batch.validate(full=True)
                yield [_column(batch.column(name), name) for name in dtypes]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if stream.over.is_set():
            return
        raise InputError(f"no Arrow IPC stream: {one_line(error)}") from error
    if stream.tail != _END and not stream.over.is_set():
        raise InputError("the peer has closed the connection before the end of the stream")


def _column(array: Any, name: str) -> Any:
    if array.null_count and array.type not in ("float", "double", "halffloat"):
        raise InputError(f"column {name!r} has no value, and its type has no NaN")
    return array.to_numpy(zero_copy_only=False)


def _shown(fields: dict[str, Any]) -> str:
    shown = ", ".join(f"{name}: {type_}" for name, type_ in list(fields.items())[:20])
    return f"({shown})"


@dataclass(frozen=True, eq=False)
class ArrowSocket(LiveChannel):
    """An Arrow IPC stream over TCP, in both directions."""

    kind = "arrow"
    listen: bool = False
    reconnect: Reconnect | None = None

    @property
    def endpoint(self) -> Endpoint:
        """The host and port."""
        return endpoint("arrow", self.address.removeprefix("tcp://"))

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.endpoint

    def connector(self, over: threading.Event) -> Connector:
        """What connects or listens."""
        return Connector(self.label, self.endpoint, self.listen, self.reconnect, over)

    def blocks(self, over: threading.Event) -> Iterator[Block]:
        contents = self.wire().contents
        dtypes = dict(zip(contents.names, contents.dtypes, strict=True))
        connector = self.connector(over)
        connector.open()
        try:
            connection = connector.next()
            if connection is None:
                return
            with connection:
                stream = BoundedStream(connection, self.max_message_bytes, over)
                try:
                    yield from batches_of(stream, dtypes)
                except InputError as error:
                    raise InputError(f"{self.label}: {error}") from error
        finally:
            connector.close()

    def writer(self, signals: Signals, over: threading.Event) -> ArrowSocketWriter:
        connector = self.connector(over)
        connector.open()
        return ArrowSocketWriter(connector, signals)


class ArrowSocketWriter:
    """Sends record batches; the connection is made for the first of them."""

    def __init__(self, connector: Connector, signals: Signals) -> None:
        self.connector, self.schema = connector, arrow_schema(signals, indexed=False)
        self._connection: socket.socket | None = None

    def _send(self, data: Any) -> None:
        over = self.connector.over
        if self._connection is None:
            self._connection = self.connector.next()
            if self._connection is None:
                return
            self._connection.settimeout(LOOK_S)
            self._send(self.schema.serialize())
        view = memoryview(data)
        while view.nbytes and not over.is_set():
            try:
                view = view[self._connection.send(view) :]
            except TimeoutError:
                continue

    def write(self, columns: Columns) -> None:
        """Send one batch."""
        self._send(arrow_batch(columns, self.schema).serialize())

    def commit(self) -> int | None:
        """What was sent cannot be taken back."""
        return None

    def finish(self) -> None:
        """Send the end of the stream and wait until the peer's system has it."""
        self._send(_END)
        if self._connection is not None:
            wait_until_sent(self._connection, self.connector.over)
        self.abort()

    def abort(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self.connector.close()
