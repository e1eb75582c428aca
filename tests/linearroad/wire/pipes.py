"""Connected pairs of connections, and bytes that arrive in pieces."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from linearroad.wire.connection import Connection


def pair(stall_s: float = 5.0) -> tuple[Connection, Connection]:
    """Two ends of one connection: the driver's, and the system's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    return Connection(near, "the system", stall_s), Connection(far, "the driver", stall_s)


@contextmanager
def sent(pieces: Sequence[Any], end: bool = True, stall_s: float = 5.0) -> Iterator[Connection]:
    """The end of a connection at which these pieces arrive, sent by a thread."""
    near, far = pair(stall_s)

    def send() -> None:
        for piece in pieces:
            near.send(piece)
        if end:
            near.end_sending()

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield far
    finally:
        thread.join(5.0)
        near.close()
        far.close()


def cut_at(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Bytes in pieces."""
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]
