"""Peers for tests of sockets: they listen or connect on loopback, and misbehave as told."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

LIMIT_S = 20.0


def free_port(family: int = socket.AF_INET, type_: int = socket.SOCK_STREAM) -> int:
    """A port that nobody uses now."""
    with socket.socket(family, type_) as probe:
        probe.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def thread_of(body: Callable[[], Any]) -> Iterator[None]:
    """Run a function beside the test; its exception is raised at the end."""
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            body()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(LIMIT_S)
    if failed:
        raise failed[0]
    assert not thread.is_alive(), "the peer has not ended"


@contextlib.contextmanager
def server(*talks: Callable[[socket.socket], Any], host: str = "127.0.0.1") -> Iterator[str]:
    """A listener that talks to as many peers as there are functions; yields its address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        listener.settimeout(LIMIT_S)

        def body() -> None:
            for talk in talks:
                peer, _ = listener.accept()
                peer.settimeout(LIMIT_S)
                with peer:
                    talk(peer)

        with thread_of(body):
            port = listener.getsockname()[1]
            yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def sends(*pieces: bytes, pause_s: float = 0.0) -> Callable[[socket.socket], None]:
    """Send pieces, each on its own, and close."""

    def talk(peer: socket.socket) -> None:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            peer.sendall(piece)
            if pause_s:
                time.sleep(pause_s)

    return talk


def resets(*pieces: bytes) -> Callable[[socket.socket], None]:
    """Send pieces, let them arrive, and reset the connection."""

    def talk(peer: socket.socket) -> None:
        sends(*pieces)(peer)
        time.sleep(0.1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return talk


def receives(into: list[bytes], pause_s: float = 0.0) -> Callable[[socket.socket], None]:
    """Receive everything, after a pause."""

    def talk(peer: socket.socket) -> None:
        time.sleep(pause_s)
        while piece := peer.recv(1 << 16):
            into.append(piece)

    return talk


def connect(port: int) -> socket.socket:
    """Connect to a listener that may not be there yet."""
    until = time.monotonic() + LIMIT_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
        except ConnectionRefusedError:
            assert time.monotonic() < until
            time.sleep(0.01)


def frame(payload: bytes) -> bytes:
    """A frame: the length in four bytes, little-endian, and the payload."""
    return struct.pack("<I", len(payload)) + payload
