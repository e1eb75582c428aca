"""Accepts drivers, one at a time; another one is refused with a sentence."""

from __future__ import annotations

import queue
import socket
import threading
import time

from linearroad.wire.connection import SLICE_S, Connection
from linearroad.wire.format import error_line
from xstream.errors import InputError

__all__ = ["Door", "dismiss"]

REFUSED = "another driver is connected: wait for its end"
GRACE_S = 1.0  # how long a driver waits for the end of the one before it
DRAIN_S = 2.0  # how long bytes of a driver that gets an error are read and dropped


def dismiss(connection: Connection, sentence: str, drain_s: float = DRAIN_S) -> None:
    """Send an error line and close the connection.

    Bytes that the driver still sends are dropped for a while: closing a connection with unread
    bytes resets it, and the driver might lose the line.
    """
    connection.stall_s = min(connection.stall_s, drain_s)
    try:
        connection.send(error_line(sentence))
        connection.end_sending()
        until, dropped = time.perf_counter() + drain_s, memoryview(bytearray(1 << 16))
        while connection.receive(dropped) != 0 and time.perf_counter() < until:
            pass
    except InputError:
        pass  # it has gone already
    finally:
        connection.close()


class Door:
    """Listens for drivers in a thread of its own, from `open` on."""

    def __init__(self, place: tuple[str, int], stall_s: float) -> None:
        self._stall_s = stall_s
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(place)
        except (OSError, OverflowError) as error:
            self._listener.close()
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"cannot listen on {place[0]}:{place[1]}: {reason}") from error
        host, port = self._listener.getsockname()[:2]
        #: Where it listens, with the port that was chosen if 0 was asked for.
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._listener.settimeout(SLICE_S)
        self._waiting: queue.Queue[Connection] = queue.Queue()
        self._free = threading.Lock()
        self._closed = False
        self.refused = 0
        self._thread = threading.Thread(target=self._accept, name="door", daemon=True)

    def open(self) -> None:
        """Start to listen; until then, drivers cannot connect."""
        if not self._thread.is_alive():
            self._listener.listen()
            self._thread.start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                sock, peer = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                time.sleep(SLICE_S)  # too many open files, say
                continue
            connection = Connection(sock, f"the driver at {peer[0]}:{peer[1]}", self._stall_s)
            if self._free.acquire(timeout=GRACE_S):
                self._waiting.put(connection)
            else:
                self.refused += 1
                dismiss(connection, REFUSED, drain_s=0.5)

    def driver(self) -> Connection | None:
        """The next driver, or None if none came for a short time."""
        try:
            return self._waiting.get(timeout=SLICE_S)
        except queue.Empty:
            return None

    def release(self) -> None:
        """The driver has gone: the next one is accepted."""
        self._free.release()

    def close(self) -> None:
        """Stop listening."""
        self._closed = True
        if self._thread.is_alive():
            self._thread.join()
        self._listener.close()
