"""The lines of a driver's flat wire, second by second, for programs that do not parse them."""

from __future__ import annotations

import socket
from collections.abc import Iterator

__all__ = ["seconds"]

RECEIVED = 1 << 20  # bytes at a time
MARK = b"1,"  # a time mark: the Type of a row that ends a second


def seconds(client: socket.socket) -> Iterator[tuple[int, bytes]]:
    """The seconds that time marks end, and the lines of their rows."""
    held = bytearray()
    while data := client.recv(RECEIVED):
        begin = max(len(held) - len(MARK) - 1, 0)
        held += data
        while (found := _mark(held, begin)) is not None:
            end = held.find(b"\n", found)
            if end < 0:
                break
            yield int(held[found:end].split(b",")[1]), bytes(held[:found])
            del held[: end + 1]
            begin = 0


def _mark(held: bytearray, begin: int) -> int | None:
    """Where the first time mark begins, if there is one."""
    if held.startswith(MARK):
        return 0
    found = held.find(b"\n" + MARK, begin)
    return None if found < 0 else found + 1
