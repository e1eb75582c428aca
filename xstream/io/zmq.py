"""`xs.io.zmq`: messages of records over ZeroMQ (the extra `zmq`)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from xstream.console import require_package
from xstream.errors import GraphError, InputError
from xstream.io.feed import Block
from xstream.io.live import LiveChannel
from xstream.io.output import Columns, Signals

__all__ = ["ZmqSocket", "zmq"]

PATTERNS = {"push": ("PULL", "PUSH"), "publish": ("SUB", "PUB")}
_LOOK_MS = 50


def _library() -> Any:
    import zmq as package

    return package


@dataclass(frozen=True, eq=False)
class ZmqSocket(LiveChannel):
    """A ZeroMQ socket: one message has records; an empty one ends the stream."""

    kind = "zmq"
    pattern: str = "push"
    bind: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_package("zmq")
        if self.pattern not in PATTERNS:
            known = ", ".join(map(repr, PATTERNS))
            raise GraphError(f"zmq: pattern is {known}, not {self.pattern!r}")

    def opened(self, sends: bool) -> Any:
        """A socket that is bound or connected."""
        library = _library()
        opened = library.Context.instance().socket(
            getattr(library, PATTERNS[self.pattern][int(sends)])
        )
        opened.setsockopt(library.LINGER, 1000)
        opened.setsockopt(library.MAXMSGSIZE, self.max_message_bytes)
        if not sends and self.pattern == "publish":
            opened.setsockopt(library.SUBSCRIBE, b"")
        try:
            (opened.bind if self.bind else opened.connect)(self.address)
        except library.ZMQError as error:
            opened.close(0)
            raise InputError(f"{self.label}: {error.strerror}") from error
        return opened

    def blocks(self, over: threading.Event) -> Iterator[Block]:
        with self.opened(sends=False) as receiving:
            while not over.is_set():
                if not receiving.poll(_LOOK_MS):
                    continue
                message = receiving.recv(copy=False)
                if not len(message):
                    return
                yield self.columns_of(message.buffer)

    def writer(self, signals: Signals, over: threading.Event) -> ZmqWriter:
        return ZmqWriter(self, signals, over)


class ZmqWriter:
    """Sends messages; waits while the peer's queue is full, unless it publishes."""

    def __init__(self, channel: ZmqSocket, signals: Signals, over: threading.Event) -> None:
        self.channel, self.signals, self.over = channel, signals, over
        self._socket = channel.opened(sends=True)

    def _send(self, data: Any) -> None:
        library = _library()
        while not self.over.is_set():
            if self._socket.poll(_LOOK_MS, library.POLLOUT):
                self._socket.send(data)
                return

    def write(self, columns: Columns) -> None:
        """Send records as one message."""
        self._send(self.channel.records_of(columns, self.signals).tobytes())

    def commit(self) -> int | None:
        """What was sent cannot be taken back."""
        return None

    def finish(self) -> None:
        """Send the empty message that ends the stream."""
        self._send(b"")
        self._socket.close()

    def abort(self) -> None:
        """Close the socket."""
        self._socket.close(0)


def zmq(
    address: str,
    dtype: npt.DTypeLike | None = None,
    rate_hz: float | None = None,
    window: int = 4096,
    *,
    pattern: str = "push",
    bind: bool = False,
    **options: Any,
) -> ZmqSocket:
    """Messages of records over ZeroMQ, as a source and as a sink; requires `xstream[zmq]`.

    `address` is that of ZeroMQ, such as "tcp://127.0.0.1:5555"; `bind` binds it, else the socket
    connects. With `pattern="push"` a full queue makes the sender wait; with "publish" it drops
    messages. An empty message ends the stream.

    >>> import numpy as np, xstream as xs
    >>> query = xs.Query()
    >>> numbers = query.source(xs.io.array(np.zeros(8), window=4))
    >>> sink = numbers.write(xs.io.zmq("tcp://127.0.0.1:5555", bind=True))
    """
    return ZmqSocket(address, dtype, rate_hz, window, pattern=pattern, bind=bind, **options)
