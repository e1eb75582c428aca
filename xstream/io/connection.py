"""Connections: opening, accepting and reconnecting sockets, in a thread that can be stopped."""

from __future__ import annotations

import errno
import fcntl
import math
import os
import select
import socket
import struct
import termios
import threading
from dataclasses import dataclass

from xstream.errors import GraphError, InputError
from xstream.io.endpoint import Endpoint

__all__ = [
    "Connector", "Reconnect", "reconnect_policy", "unsent_bytes", "wait_until_sent", "widen_window",
]  # fmt: skip

#: How long a thread waits before it looks whether the run is over.
LOOK_S = 0.05
#: The receive window of a connection from its start: more than a sender's buffer usually holds.
WINDOW_BYTES = 4 << 20


@dataclass(frozen=True)
class Reconnect:
    """How often a lost or refused connection is tried again, and the pauses between attempts.

    `attempts` counts attempts in a row that fail; a connection that is made resets it. The first
    pause is `first_s`, and every further one twice as long, up to `longest_s`.

    >>> again = Reconnect(attempts=5, first_s=0.1, longest_s=0.3)
    >>> [again.pause_s(failures) for failures in (1, 2, 3)]
    [0.1, 0.2, 0.3]
    """

    attempts: float = math.inf
    first_s: float = 0.1
    longest_s: float = 5.0

    def pause_s(self, failures: int) -> float:
        """The pause after so many failures in a row."""
        return float(min(self.first_s * 2.0 ** min(failures - 1, 60), self.longest_s))


def reconnect_policy(kind: str, given: bool | int | Reconnect) -> Reconnect | None:
    """The policy of `reconnect=`: a number of attempts, True for any number, or a `Reconnect`."""
    if isinstance(given, Reconnect):
        if given.attempts >= 0 and 0 <= given.first_s <= given.longest_s < math.inf:
            return given
    elif isinstance(given, bool):
        return Reconnect() if given else None
    elif isinstance(given, int) and given >= 0:
        return Reconnect(given) if given else None
    raise GraphError(
        f"{kind}: reconnect is a number of attempts, True, False or an xs.io.Reconnect, not "
        f"{given!r}"
    )


class Connector:
    """Makes the TCP connections of a source or a sink, one at a time.

    `where` is what errors call it. As a listener it accepts one peer; with a reconnect policy the
    next one after that. `over` ends all waiting.
    """

    def __init__(
        self, where: str, endpoint: Endpoint, listen: bool, reconnect: Reconnect | None,
        over: threading.Event,
    ) -> None:  # fmt: skip
        self.where, self.endpoint, self.listen = where, endpoint, listen
        self.reconnect, self.over = reconnect, over
        self.connections = 0
        self.failures = 0
        self._listener: socket.socket | None = None

    def open(self) -> None:
        """Bind the socket of a listener, so that an address in use is an error at once."""
        if not self.listen:
            return
        family, address = self.endpoint.addresses(socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(1)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            raise self._refused("cannot be listened on", error) from error
        self._listener = listener

    def close(self) -> None:
        """Close the listening socket."""
        if self._listener is not None:
            self._listener.close()

    def next(self) -> socket.socket | None:
        """The next connection; None if the run is over. Raises an InputError when it gives up."""
        while not self.over.is_set():
            try:
                made = self._accept() if self.listen else self._connect()
            except OSError as error:
                self.failed(error)
                continue
            if made is not None:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.connections += 1
                self.failures = 0
                if self.listen and self.reconnect is None:
                    self.close()  # other peers are refused
                return made
        return None

    def failed(self, error: OSError | str) -> None:
        """A connection has failed: pause before the next attempt, or raise an InputError."""
        self.failures += 1
        policy = self.reconnect
        if policy is None or self.failures > policy.attempts:
            raise self._refused("cannot be reached" if self.connections == 0 else "is lost", error)
        self.over.wait(policy.pause_s(self.failures))

    def lost(self, error: OSError | str) -> InputError:
        """The error of a connection that was lost for good."""
        return self._refused("is lost", error)

    def _refused(self, what: str, error: OSError | str) -> InputError:
        why = error if isinstance(error, str) else error.strerror or str(error)
        tried = f" (tried {self.failures} times)" if self.failures > 1 else ""
        return InputError(f"{self.where} {what}: {why}{tried}")

    def _accept(self) -> socket.socket | None:
        assert self._listener is not None
        while not self.over.is_set():
            if select.select([self._listener], [], [], LOOK_S)[0]:
                try:
                    return self._listener.accept()[0]
                except (BlockingIOError, ConnectionAbortedError):
                    continue  # the peer has gone already
        return None

    def _connect(self) -> socket.socket | None:
        """Try the addresses of the host in turn; raise the error of the last one."""
        last: OSError | None = None
        for family, address in self.endpoint.addresses(socket.SOCK_STREAM):
            try:
                trying = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:  # a system without IPv6
                last = error
                continue
            trying.setblocking(False)
            state = trying.connect_ex(address)
            while state in (errno.EINPROGRESS, errno.EALREADY) and not self.over.is_set():
                if select.select([], [trying], [], LOOK_S)[1]:
                    state = trying.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if state == 0 and trying.getsockname() != trying.getpeername():
                return trying
            # A port of the local range can be connected to itself, where nobody listens.
            last = OSError(state or errno.ECONNREFUSED, os.strerror(state or errno.ECONNREFUSED))
            trying.close()
            if self.over.is_set():
                return None
        raise last or OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))


def widen_window(connection: socket.socket) -> None:
    """Give a connection a large receive buffer at once, and leave its further growth to the system.

    The system begins with a small one. While the window is full, the acknowledgements of the
    receiver also send what waits at the other end of a loopback connection, on the receiver's
    processor: receiving then takes twice the time, and the receiver never catches up. A low-water
    mark enlarges the buffer up to the limit of `tcp_rmem`, without the privileges that SO_RCVBUF
    needs and without turning off the growth; the buffer stays when the mark is set back.
    """
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, WINDOW_BYTES)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    except OSError:
        return  # a system that has no such mark: slower at most


def unsent_bytes(connection: socket.socket) -> int:
    """The number of bytes that the peer's system has not acknowledged."""
    return int(struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, b"\0\0\0\0"))[0])


def wait_until_sent(connection: socket.socket, over: threading.Event) -> None:
    """Wait until the peer's system has everything, or until `over`; raise an OSError if it is lost.

    What the operating system holds when a connection is lost cannot be sent again.
    """
    hung = select.poll()
    hung.register(connection, 0)  # errors and hang-ups only
    while (unsent := unsent_bytes(connection)) and not over.is_set():
        if hung.poll(1):
            error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) or errno.EPIPE
            raise OSError(error, f"{os.strerror(error)}, before it had the last {unsent:,} bytes")
