"""`xs.io.tcp`: records or frames over a TCP connection, as a source and as a sink."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream._native import lib
from xstream.engine.native import NativePlan
from xstream.engine.operator import MAX_SIZE, Operator, whole_number
from xstream.engine.schema import Schema
from xstream.errors import GraphError
from xstream.io.connection import Connector, Reconnect, reconnect_policy
from xstream.io.endpoint import Endpoint, endpoint
from xstream.io.not_a_number import check_policy
from xstream.io.receiver import StreamReceiver
from xstream.io.transmitter import SocketSink, StreamTransmitter
from xstream.io.wire import Wire, timebase, wire

__all__ = ["TcpSocket", "tcp"]

FRAMINGS = ("none", "length")
#: The width of windows of a stream without frames.
WINDOW = 4096


@dataclass(frozen=True, eq=False)
class TcpSocket(Operator):
    """A TCP connection as a source of records, and as a sink (`stream.write`)."""

    kind = "tcp"
    ports = ()

    endpoint: Endpoint
    dtype: Any = None
    rate_hz: float | None = None
    window: int | None = None
    layout: str = "fields"
    channels: int = 1
    framing: str = "none"
    listen: bool = False
    reconnect: Reconnect | None = None
    max_frame_bytes: int = 16 << 20
    partial: bool = True
    start_time: float = 0.0
    nan: str = "keep"

    def __post_init__(self) -> None:
        check_policy(self.kind, self.nan)
        if self.framing not in FRAMINGS:
            known = ", ".join(map(repr, FRAMINGS))
            raise GraphError(f"tcp: framing is {known}, not {self.framing!r}")
        if self.window is not None:
            whole_number(self, "window", 1, MAX_SIZE)
        whole_number(self, "max_frame_bytes", 1, 2**31)
        self.wire()
        timebase(self.rate_hz, self.start_time)

    @property
    def label(self) -> str:
        return f"tcp {self.endpoint}"

    def wire(self) -> Wire:
        """The records of the source."""
        dtype = np.float32 if self.dtype is None else self.dtype
        return wire(self.kind, dtype, self.channels, self.layout)

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        contents = self.wire().contents
        times = timebase(self.rate_hz, self.start_time, contents.interleaved)
        return contents.schemas(self.label, self.layout, times)

    def connector(self) -> Connector:
        """What connects or listens."""
        return Connector(self.label, self.endpoint, self.listen, self.reconnect, threading.Event())

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        records = self.wire()
        record, _fields = records.native(self.nan)
        framed = self.framing == "length"
        window = self.window if framed else self.window or WINDOW
        window = 1 if records.layout == "rows" else window
        options = {
            "framed": framed, "max_frame_bytes": self.max_frame_bytes, "window": window or 0,
        }  # fmt: skip
        intake = lib.xs_stream_new(plan.manager._handle, record, options)
        receiver = StreamReceiver(self.label, intake, len(records.names), self.connector())
        return receiver.source(plan, self.layout, window, self.partial)

    def sink_operator(self) -> Operator:
        """The connection as a sink."""
        return SocketSink(self)

    def transmitter(self, plan: NativePlan, schema: Schema, records: Wire) -> StreamTransmitter:
        """What sends the tuples of a stream."""
        options = {
            "framed": self.framing == "length", "max_frame_bytes": self.max_frame_bytes,
            "datagrams": 0, "sequence": 0,
        }  # fmt: skip
        return StreamTransmitter(plan, self.label, schema, records, options, self.connector())


def tcp(
    address: str | int,
    dtype: npt.DTypeLike | None = None,
    rate_hz: float | None = None,
    window: int | None = None,
    *,
    framing: str = "none",
    listen: bool = False,
    reconnect: bool | int | Reconnect = False,
    layout: str = "fields",
    channels: int = 1,
    **options: Any,
) -> TcpSocket:
    """Records of a dtype over TCP: connects to `address`, or accepts a peer if `listen`.

    `address` is "host:port", or a port of the loopback interface. Without framing the bytes are
    records one after another, cut into windows; with `framing="length"` a frame is its length in
    bytes (four bytes, little-endian) and records, and without `window` every frame is a tuple.
    Structured dtypes become fields, as in files. A slow query slows down the peer, and nothing is
    lost. `reconnect` is the number of attempts after a connection is refused or lost
    (docs/sources.md).

    >>> import numpy as np, threading, xstream as xs
    >>> send = xs.Query("send")
    >>> _ = send.source(xs.io.array(np.arange(6.0), window=3)).write(xs.io.tcp(9712, reconnect=50))
    >>> sending = threading.Thread(target=send.run)
    >>> sending.start()
    >>> q = xs.Query("receive")
    >>> out = q.source(xs.io.tcp(9712, np.float64, window=2, listen=True)).collect()
    >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    >>> sending.join()
    """
    return TcpSocket(
        endpoint("tcp", address), dtype, rate_hz, window, layout, channels, framing, listen,
        reconnect_policy("tcp", reconnect), **options,
    )  # fmt: skip
