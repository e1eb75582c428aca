"""`Receiver`: the attachment of a source that receives from a socket."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from typing import Any, ClassVar

from xstream._native import ffi, lib
from xstream.engine.attachment import Outcome
from xstream.engine.native import NativePlan, checked
from xstream.errors import InputError, SegmentMemoryError
from xstream.io.connection import Connector, widen_window
from xstream.io.feed import LAYOUTS

__all__ = ["Receiver", "StreamReceiver"]

_PATIENCE_NS = 50_000_000
_LOST = {
    lib.XS_LINK_CLOSED: "the peer has closed the connection",
    lib.XS_LINK_CUT: "the peer has closed the connection in the middle of a record or frame",
}


class Receiver:
    """Gives sockets to an intake of the core, which receives on the engine's thread."""

    #: The counters of the intake that the source has, by their names.
    COUNTERS: ClassVar[Mapping[str, int]] = {}
    guarantee = "what was received cannot be asked for again"

    def __init__(self, where: str, intake: Any, columns: int) -> None:
        feed = lib.xs_feed_new(columns, 1) if intake else ffi.NULL
        if not feed:
            raise SegmentMemoryError("no memory is left for a source")
        lib.xs_feed_receive(feed, intake)
        self.where, self.intake = where, intake
        self.feed = ffi.gc(feed, lib.xs_feed_drop)  # with the intake
        self.over = threading.Event()
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def error(self) -> BaseException | None:
        """The error, in one sentence that names the address."""
        message = ffi.string(lib.xs_intake_message(self.intake)).decode(errors="replace")
        if self._error is None and message:
            return InputError(f"{self.where}: {message}")
        return self._error

    def source(self, plan: NativePlan, layout: str, window: int | None, partial: bool) -> Any:
        """The native source."""
        native = LAYOUTS["fields" if layout == "interleaved" else layout]
        op = checked(lib.xs_op_feed_source(plan.handle, self.feed, native, window or 0, partial))
        plan.attach(op, self)
        return op

    def counters(self) -> dict[str, int]:
        """What was received, lost and left out."""
        native = ffi.new("int64_t[]", lib.XS_NET_COUNTERS)
        lib.xs_intake_counters(self.intake, native)
        return {name: int(native[place]) for name, place in self.COUNTERS.items()}

    def open(self) -> None:
        """Open what begins with the run; errors of it end the run at once."""

    def begin(self) -> None:
        """Start to receive."""
        self.open()
        self._thread = threading.Thread(target=self._serve, name="xstream link", daemon=True)
        self._thread.start()

    def end(self, outcome: Outcome) -> None:
        """Close the socket."""
        self.over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        """The body of the thread."""
        try:
            self.serve()
            lib.xs_intake_close(self.intake, 0)
        except BaseException as error:
            self._error = error
            lib.xs_intake_close(self.intake, 1)

    def serve(self) -> None:
        """Give sockets to the intake until the stream ends or the run is over."""
        raise NotImplementedError

    def lost(self, receiving: socket.socket) -> str:
        """Let the core use a socket; return why it is lost, or "" at the end of the stream."""
        lib.xs_intake_open(self.intake, receiving.fileno())
        link = lib.XS_LINK_UP
        while link == lib.XS_LINK_UP and not self.over.is_set():
            link = lib.xs_intake_wait(self.intake, _PATIENCE_NS)
        if link == lib.XS_LINK_FAILED:
            raise InputError(
                f"{self.where}: {ffi.string(lib.xs_intake_message(self.intake)).decode()}"
            )
        if link == lib.XS_LINK_BROKEN:
            return os.strerror(lib.xs_intake_error(self.intake))
        return _LOST.get(link, "")


class StreamReceiver(Receiver):
    """Receives from the TCP connections of a connector."""

    COUNTERS: ClassVar[Mapping[str, int]] = {
        "bytes": lib.XS_NET_BYTES, "frames": lib.XS_NET_MESSAGES, "cut": lib.XS_NET_CUT,
    }  # fmt: skip

    def __init__(self, where: str, intake: Any, columns: int, connector: Connector) -> None:
        super().__init__(where, intake, columns)
        self.connector = connector
        self.connector.over = self.over

    def counters(self) -> dict[str, int]:
        """What was received, and the connections."""
        return {**super().counters(), "connections": self.connector.connections}

    def open(self) -> None:
        """Bind the socket of a listener."""
        self.connector.open()

    def serve(self) -> None:
        """Connect, and again after a connection was lost, by the policy."""
        try:
            while (receiving := self.connector.next()) is not None:
                with receiving:
                    widen_window(receiving)
                    why = self.lost(receiving)
                ends = self.connector.reconnect is None and why == _LOST[lib.XS_LINK_CLOSED]
                if not why or ends or self.over.is_set():
                    return
                self.connector.failed(why)
        finally:
            self.connector.close()
