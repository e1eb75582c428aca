"""One end of a TCP connection: every wait is short, bounded and counted."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import struct
import termios
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

from xstream.errors import InputError

__all__ = ["Connection", "Cut", "Stalled", "WireError", "address", "check_stall", "read_exactly"]

SLICE_S = 0.1  # the longest wait without a look at other things to do
CONFIRM_S = 0.001  # between two looks at what has been confirmed
STALL_S = 60.0  # how long the other side may read nothing, or leave a frame incomplete
LONGEST_STALL_S = 1e6
#: Bytes that the kernel may hold in each direction; it doubles them, and caps them if it must.
KERNEL_BYTES = 4 << 20


class WireError(InputError):
    """Bytes on a connection that cannot be used, or a connection that failed."""


class Cut(WireError):
    """The connection is gone."""


class Stalled(WireError):
    """The other side has stopped reading, or stopped within a frame."""


def address(text: str, option: str) -> tuple[str, int]:
    """Host and port of HOST:PORT; an IPv6 address stands in brackets.

    >>> address("[::1]:9000", "--to")
    ('::1', 9000)
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InputError(f"{option} must be HOST:PORT, for example 127.0.0.1:9000, not {text!r}")
    return host, int(port)


def check_stall(stall_s: float) -> None:
    """Raise an InputError for a time that is none."""
    if not SLICE_S <= stall_s <= LONGEST_STALL_S:
        raise InputError(
            f"--stall-s must be from {SLICE_S:g} to {LONGEST_STALL_S:,.0f}, not {stall_s:g}"
        )


class Connection:
    """Sends and receives bytes; `name` says in sentences who the other side is."""

    def __init__(self, sock: socket.socket, name: str, stall_s: float = STALL_S) -> None:
        self.name, self.stall_s = name, stall_s
        #: Whether to give up waiting for the other side to read.
        self.stopped: Callable[[], bool] = lambda: False
        self._socket = sock
        #: Seconds in which the other side accepted no bytes, up to now.
        self.blocked_s = 0.0
        self.bytes_in = self.bytes_out = 0
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, buffer, KERNEL_BYTES)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(sock, select.POLLIN)
        self._writable.register(sock, select.POLLOUT)

    def receive(self, into: memoryview, most_s: float = SLICE_S) -> int | None:
        """The number of bytes received; 0 at the end, None if nothing came for a short time."""
        try:
            count = self._socket.recv_into(into)
        except BlockingIOError:
            if not self._readable.poll(1000 * most_s):
                return None
            return self.receive(into, 0.0) if most_s else None
        except OSError as error:
            raise Cut(f"{self.name} disconnected: {error.strerror}") from error
        self.bytes_in += count
        return count

    def send(self, data: Any) -> None:
        """Send all bytes of a buffer; waits while the other side does not read."""
        view = memoryview(data)
        left, since = view.cast("B") if view.nbytes else b"", 0.0
        while left:
            try:
                sent = self._socket.send(left)
            except BlockingIOError:
                since = self._wait_to_send(since or time.perf_counter())
                continue
            except OSError as error:
                raise Cut(f"{self.name} disconnected: {error.strerror}") from error
            since = 0.0
            self.bytes_out += sent
            left = left[sent:]

    def _wait_to_send(self, since: float) -> float:
        """Wait a little until bytes can be sent; returns the time since when none could be."""
        began = time.perf_counter()
        self._writable.poll(1000 * SLICE_S)
        now = time.perf_counter()
        self.blocked_s += now - began
        if self.stopped():
            raise Cut(f"sending to {self.name} was stopped")
        if now - since > self.stall_s:
            raise Stalled(f"{self.name} has not read anything for {now - since:.1f} s")
        return since

    def flush(self) -> None:
        """Wait until the other side's computer has confirmed all bytes.

        From then on the other side can read them even if this process or the connection ends.
        """
        since, waiting = time.perf_counter(), self._unconfirmed()
        while waiting:
            self._check_open()  # bytes that a reset left behind are never confirmed
            time.sleep(CONFIRM_S)
            left = self._unconfirmed()
            if left < waiting:
                since = time.perf_counter()
            elif time.perf_counter() - since > self.stall_s:
                raise Stalled(f"{self.name} has not read anything for {self.stall_s:.1f} s")
            waiting = left
            if self.stopped():
                raise Cut(f"sending to {self.name} was stopped")
        self._check_open()

    def _check_open(self) -> None:
        """Raise a Cut if the connection has failed."""
        error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if not error and any(event & select.POLLHUP for _, event in self._writable.poll(0)):
            error = errno.ECONNRESET  # which another call has been told already
        if error:
            raise Cut(f"{self.name} disconnected: {os.strerror(error)}")

    def _unconfirmed(self) -> int:
        """The bytes that were sent and not yet confirmed."""
        counted = fcntl.ioctl(self._socket, termios.TIOCOUTQ, struct.pack("i", 0))
        return int(struct.unpack("i", counted)[0])

    def peek(self, most: int) -> tuple[bytes, bool]:
        """The first bytes that wait to be received, without receiving them, and if they end."""
        self._readable.poll(1000 * SLICE_S)
        try:
            found = self._socket.recv(most, socket.MSG_PEEK)
        except BlockingIOError:
            return b"", False
        except OSError:
            return b"", True  # which receiving tells in words
        return found, not found

    def end_sending(self) -> None:
        """Mark the end of what is sent; the other side may still send."""
        with suppress(OSError):  # the other side has gone, which reading from it tells
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def read_exactly(
    connection: Connection, into: memoryview, within_frame: bool
) -> Generator[None, None, int]:
    """Fill a buffer; yields while it waits, and returns the bytes received before the end.

    A frame that has begun must be complete after `stall_s`.
    """
    filled, began = 0, time.perf_counter()
    while filled < len(into):
        count = connection.receive(into[filled:])
        if count == 0:
            break
        if count is not None:
            filled += count
            continue
        if not filled and not within_frame:
            began = time.perf_counter()
        elif time.perf_counter() - began > connection.stall_s:
            raise Stalled(
                f"{connection.name} has sent only a part of a frame for "
                f"{time.perf_counter() - began:.1f} s"
            )
        yield
    return filled
