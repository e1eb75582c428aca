"""The way to a system: connecting, and connecting again after the connection was cut."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from linearroad.driver.results import DriveOptions
from linearroad.wire.connection import Connection, WireError, address
from linearroad.wire.resumption import ask_position
from xstream.errors import InputError

__all__ = ["Line"]

AGAIN_S = 0.2  # between two attempts to connect


class Line:
    """The connection to a system, one after the other."""

    def __init__(self, to: str, options: DriveOptions) -> None:
        self._place, self._options = address(to, "--to"), options
        self._earlier_in = self._earlier_out = 0  # bytes of earlier connections
        self._earlier_s = 0.0
        self.connection: Connection | None = None

    @property
    def name(self) -> str:
        """Who the other side is, in sentences."""
        return f"the system at {self._place[0]}:{self._place[1]}"

    @property
    def bytes_sent(self) -> int:
        """Bytes sent over all connections."""
        return self._earlier_out + (self.connection.bytes_out if self.connection else 0)

    @property
    def bytes_received(self) -> int:
        """Bytes received over all connections."""
        return self._earlier_in + (self.connection.bytes_in if self.connection else 0)

    @property
    def blocked_s(self) -> float:
        """Seconds in which the system accepted no bytes."""
        return self._earlier_s + (self.connection.blocked_s if self.connection else 0.0)

    def connect(self) -> Connection:
        """Connect to a system that may take a while until it listens."""
        until = time.perf_counter() + self._options.wait_s
        while (found := self._attempt(until, self._options.wait_s)) is None:
            time.sleep(AGAIN_S)
        return found

    def connect_again(
        self, answers: int, stopped: Callable[[], bool], look: Callable[[], None]
    ) -> tuple[int, int]:
        """Connect again and ask where to go on; returns the system's ROWS and ANSWERS."""
        self.close()
        most_s = self._options.reconnect_s
        until = time.perf_counter() + most_s
        while not stopped():
            look()
            try:
                if (found := self._attempt(until, most_s)) is not None:
                    return ask_position(found, answers, most_s, stopped)
            except WireError as error:
                if time.perf_counter() >= until:
                    raise InputError(f"{error}; tried for {most_s:g} s") from error
                self.close()
            time.sleep(AGAIN_S)
        raise WireError("the drive was stopped")

    def _attempt(self, until: float, most_s: float) -> Connection | None:
        try:
            sock = socket.create_connection(self._place, timeout=max(most_s, 5.0))
        except OSError as error:
            if time.perf_counter() < until and not isinstance(error, socket.gaierror):
                return None
            told, reason = self.name.removeprefix("the system at "), error.strerror or error
            raise InputError(f"no connection to {told}: {reason}") from error
        self.connection = Connection(sock, self.name, self._options.stall_s)
        return self.connection

    def close(self) -> None:
        """Close the connection."""
        if self.connection is not None:
            self.connection.close()
            self._earlier_out, self._earlier_in = self.bytes_sent, self.bytes_received
            self._earlier_s = self.blocked_s
            self.connection = None
