"""`SocketSink` and its transmitters: tuples that a thread sends to a socket."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from xstream._native import ffi, lib
from xstream.engine.attachment import Outcome
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator
from xstream.engine.schema import Schema
from xstream.errors import InputError, SegmentMemoryError
from xstream.io.connection import Connector, wait_until_sent
from xstream.io.sink import GROUPS, Watched, signals_of
from xstream.io.wire import Wire, wire_of

__all__ = ["Sending", "SocketSink", "StreamTransmitter", "Transmitter"]

_PATIENCE_NS = 50_000_000
#: How long a stopped run waits for a peer that does not read.
GRACE_S = 1.0


class Sending(Protocol):
    """A socket as it was declared, which knows how to send."""

    @property
    def kind(self) -> str:
        """Its name in errors."""

    @property
    def label(self) -> str:
        """Its kind and address."""

    @property
    def dtype(self) -> Any:
        """The records to be sent; None: what the stream carries."""

    def transmitter(self, plan: NativePlan, schema: Schema, records: Wire) -> Transmitter:
        """What sends the tuples of a stream."""


@dataclass(frozen=True)
class SocketSink(Operator):
    """Sends every tuple to a socket."""

    socket: Sending

    @property
    def label(self) -> str:
        return f"write {self.socket.label}"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self._wire(inputs[0])
        return ()

    def _wire(self, schema: Schema) -> Wire:
        return wire_of(self.socket.kind, signals_of(self.label, schema), self.socket.dtype)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        made = self.socket.transmitter(plan, inputs[0], self._wire(inputs[0]))
        op = checked(lib.xs_op_drain_sink(plan.handle, made.drain))
        plan.attach(op, made)
        return op


class Transmitter(Watched):
    """Takes groups of tuples from the engine and sends them, in a thread."""

    COUNTERS: tuple[str, ...] = ("messages", "bytes", "tuples", "refused")
    guarantee = "what was sent cannot be taken back: after a failure tuples are sent again"

    def __init__(
        self, plan: NativePlan, where: str, schema: Schema, records: Wire, options: Any
    ) -> None:
        drain = lib.xs_drain_new(len(schema), schema.segment_bits, GROUPS)
        if not drain:
            raise SegmentMemoryError("no memory is left for a sink")
        super().__init__(plan, ffi.gc(drain, lib.xs_drain_drop))
        lib.xs_drain_prompt(self.drain)
        record, _fields = records.native()
        sender = lib.xs_sender_new(self.drain, record, options)
        if not sender:
            raise SegmentMemoryError("no memory is left for a sink")
        self.sender = ffi.gc(sender, lib.xs_sender_drop)
        self.where = where
        self.error: BaseException | None = None
        self.over = threading.Event()
        self._thread: threading.Thread | None = None

    def counters(self) -> Mapping[str, int]:
        """What was sent."""
        native = ffi.new("int64_t[]", len(self.COUNTERS))
        lib.xs_sender_counters(self.sender, native)
        return dict(zip(self.COUNTERS, map(int, native), strict=True))

    def open(self) -> None:
        """Open what begins with the run; errors of it end the run at once."""

    def begin(self) -> None:
        """Start to send."""
        self.open()
        self._thread = threading.Thread(target=self._serve, name="xstream sender", daemon=True)
        self._thread.start()

    def end(self, outcome: Outcome) -> None:
        """Send the rest. A peer that does not read is given up if the run was stopped."""
        lib.xs_drain_close(self.drain)
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            if outcome != "done":
                thread.join(GRACE_S if outcome == "stopped" else 0.0)
                self.abandon()
            while thread.is_alive():
                thread.join(0.05)
                if self.stop_asked():
                    thread.join(GRACE_S)
                    self.abandon()
        except KeyboardInterrupt:
            self.abandon()
        thread.join()
        if self.error is not None and outcome == "done":
            raise self.error

    def abandon(self) -> None:
        """Stop waiting for the peer; what was not sent is dropped."""
        self.over.set()
        lib.xs_sender_abandon(self.sender)
        lib.xs_drain_abandon(self.drain)

    def _serve(self) -> None:
        """The body of the thread."""
        try:
            self.serve()
        except BaseException as error:
            self.error = error
            lib.xs_drain_fail(self.drain)

    def serve(self) -> None:
        """Open sockets and send until the streams end or the run is over."""
        raise NotImplementedError

    def send_all(self, sending: socket.socket) -> str:
        """Send through a socket; return why it is lost, or "" at the end."""
        outcome = lib.XS_SENT
        while outcome in (lib.XS_SENT, lib.XS_SEND_IDLE):
            outcome = lib.xs_sender_send(self.sender, sending.fileno(), _PATIENCE_NS)
        if outcome == lib.XS_SEND_ENDED:
            outcome = lib.xs_sender_finish(self.sender, sending.fileno())
        return self._why() if outcome == lib.XS_SEND_FAILED else ""

    def _why(self) -> str:
        error = lib.xs_sender_error(self.sender)
        if error == errno.EINVAL:
            raise InputError("the segments of a tuple cover different ranges of their signals")
        if error == errno.ENOMEM:
            raise SegmentMemoryError("no memory is left to send a tuple")
        return os.strerror(error)


class StreamTransmitter(Transmitter):
    """Sends through the TCP connections of a connector."""

    guarantee = (
        "what was sent over TCP cannot be taken back: after a failure the tuples since the last "
        "checkpoint are sent again (at least once)"
    )

    def __init__(
        self, plan: NativePlan, where: str, schema: Schema, records: Wire, options: Any,
        connector: Connector,
    ) -> None:  # fmt: skip
        super().__init__(plan, where, schema, records, options)
        self.connector = connector
        self.connector.over = self.over

    def counters(self) -> dict[str, int]:
        """What was sent, and the connections."""
        sent = super().counters()
        return {
            "bytes": sent["bytes"], "frames": sent["messages"], "tuples": sent["tuples"],
            "connections": self.connector.connections,
        }  # fmt: skip

    def open(self) -> None:
        """Bind the socket of a listener."""
        self.connector.open()

    def serve(self) -> None:
        """Connect and send, and again after a connection was lost, by the policy."""
        try:
            while (sending := self.connector.next()) is not None:
                with sending:
                    if not (why := self._send_whole(sending)) or self.over.is_set():
                        return
                self.connector.failed(why)
        finally:
            self.connector.close()

    def _send_whole(self, sending: socket.socket) -> str:
        """Send everything and wait until the peer's system has it."""
        why = self.send_all(sending)
        if why or self.over.is_set():
            return why
        try:
            wait_until_sent(sending, self.over)
            sending.shutdown(socket.SHUT_WR)
        except OSError as error:  # too late to send anything again
            raise self.connector.lost(error) from error
        return ""
