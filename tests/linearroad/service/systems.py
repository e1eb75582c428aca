"""A service in a thread, and what misbehaving drivers need to talk to it."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from linearroad.service.job import Served, ServeOptions, serve
from linearroad.tables.history import History
from linearroad.wire.connection import address

from xstream.console.stop import Stop


@dataclass
class Running:
    """A service that runs in a thread."""

    address: str = ""
    log: list[str] = field(default_factory=list)
    served: list[Served] = field(default_factory=list)
    error: BaseException | None = None

    def connect(self) -> socket.socket:
        return socket.create_connection(address(self.address, "--to"), timeout=20.0)


@contextmanager
def running(options: ServeOptions, history: History | None = None) -> Iterator[Running]:
    """A service that listens; it is stopped, and must end, with the block."""
    found, stop, ready = Running(), Stop(), queue.Queue[str]()

    def work() -> None:
        try:
            found.served = serve(options, history or History(), found.log.append, stop, ready.put)
        except BaseException as error:
            found.error = error
            ready.put("")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    found.address = ready.get(timeout=300.0)
    if found.error is not None:
        raise found.error
    try:
        yield found
    finally:
        stop.set()
        thread.join(20.0)
        assert not thread.is_alive(), "the service does not end"
    if found.error is not None:
        raise found.error


def everything(sock: socket.socket) -> bytes:
    """All bytes up to the end of a connection."""
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)
