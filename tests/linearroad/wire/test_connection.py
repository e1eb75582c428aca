"""Connections that fail are noticed at once."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

import pytest
from linearroad.wire.connection import Connection, Cut


@pytest.mark.parametrize("told", [False, True])
def test_bytes_that_a_reset_leaves_behind_are_not_waited_for(told: bool) -> None:
    """`told`: another call has reported the reset before."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = socket.create_connection(listener.getsockname())
        sock, _ = listener.accept()
    connection = Connection(sock, "the driver")
    with contextlib.suppress(BlockingIOError):
        while True:  # more than the kernel of the other side takes
            sock.send(bytes(1 << 16))
    other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    other.close()
    if told:
        with pytest.raises(Cut, match="reset"):
            connection.receive(memoryview(bytearray(1)), most_s=5.0)
    began = time.perf_counter()
    with pytest.raises(Cut, match="the driver disconnected: Connection reset by peer"):
        connection.flush()
    assert time.perf_counter() - began < connection.stall_s / 4
    connection.close()
