"""Arbitrary bytes from peers: frames, datagrams and Arrow streams, without a query around them."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from xstream._native import ffi, lib

import xstream as xs
from xstream.io.arrow_socket import BoundedStream, batches_of
from xstream.io.udp import UdpSocket, udp
from xstream.io.wire import wire

NANS = ("keep", "error", "zero")
RECORD = np.dtype([("n", ">i2"), ("x", "<f4")])
MANAGER = xs.memory_manager("refcount-lazy", limit_bytes=64 << 20)


def _outcome(intake: Any, receiving: socket.socket, wanted: int) -> str:
    """All that an intake makes of what has arrived."""
    owned = ffi.gc(intake, lib.xs_intake_drop)
    lib.xs_intake_open(owned, receiving.fileno())
    samples = lib.xs_intake_take_all(owned, wanted)
    counters = ffi.new("int64_t[]", lib.XS_NET_COUNTERS)
    lib.xs_intake_counters(owned, counters)
    if min(counters) < 0 or samples > 1 << 20:
        raise AssertionError(f"{samples} samples, counters {list(counters)}")
    ffi.release(owned)
    if MANAGER.stats().live_blocks:
        raise AssertionError("a block of an intake was not freed")
    return "refused" if samples < 0 else "read"


@cache
def _frame_record(dtype: Any, nan: str) -> tuple[Any, Any]:
    return wire("tcp", dtype, 1, "fields").native(nan)


@cache
def _datagram_options(
    dtype: Any, window: int | None, sequence: bool, gap: Any, reorder: int, on_error: Any, nan: str
) -> tuple[Any, Any]:
    """The record and its fields, and the options of a source, as the core takes them."""
    declared: UdpSocket = udp(
        9, dtype, window=window, sequence=sequence, gap=gap, max_gap=5000,
        reorder=reorder, on_error=on_error,
    )  # fmt: skip
    return declared.wire().native(nan), declared._options(window)


def parse_frames(data: bytes) -> str:
    """A byte stream of frames, as samples or as records, in windows or as they are."""
    window = (0, 1, 7)[len(data) % 3]
    dtype: Any = (RECORD, np.int16, np.float32)[len(data) // 6 % 3]
    record, _fields = _frame_record(dtype, NANS[len(data) // 2 % 3])
    options = {"framed": 1, "max_frame_bytes": 4096, "window": window}
    sending, receiving = socket.socketpair()
    with receiving:
        with sending:
            sending.sendall(data[: 1 << 16])
        return _outcome(lib.xs_stream_new(MANAGER._handle, record, options), receiving, window or 1)


def parse_datagrams(data: bytes) -> str:
    """Datagrams, each after its length in one byte; by headers, policies and windows."""
    sequence = len(data) % 5 > 0
    gap = ("error", "null", "split")[len(data) % 3] if sequence else "error"
    on_error = ("raise", "drop")[len(data) // 2 % 2]
    window = (None, 5)[len(data) // 3 % 2]
    dtype: Any = RECORD if len(data) % 7 == 0 else (np.int16, np.float32)[len(data) % 13 % 2]
    (record, _fields), options = _datagram_options(
        dtype, window, sequence, gap, len(data) % 4, on_error, NANS[len(data) % 11 % 3]
    )
    sending, receiving = socket.socketpair(type=socket.SOCK_DGRAM)
    with receiving, sending:
        sending.setblocking(False)
        at = 0
        try:
            while at < len(data):
                sending.send(data[at + 1 : at + 1 + data[at]])
                at += 1 + data[at]
        except BlockingIOError:
            pass  # as many as fit
        intake = lib.xs_datagrams_new(MANAGER._handle, record, options)
        return _outcome(intake, receiving, window or 1)


def parse_arrow(data: bytes) -> str:
    """An Arrow IPC stream over a socket."""
    sending, receiving = socket.socketpair()
    with receiving:
        with sending:
            sending.sendall(data[: 1 << 16])
        stream = BoundedStream(receiving, 1 << 16, threading.Event())
        try:
            for block in batches_of(stream, {"n": np.dtype("i8"), "x": np.dtype("f8")}):
                if len({len(column) for column in block}) != 1:
                    raise AssertionError("columns of different lengths")
                for column in block:
                    column.sum()
        except xs.InputError:
            return "refused"
    return "read"


SOCKETS: dict[str, Callable[[bytes], str]] = {
    "arrow-tcp": parse_arrow, "datagrams": parse_datagrams, "frames": parse_frames,
}  # fmt: skip


def socket_seeds(form: str) -> list[bytes]:
    """Small inputs that are right."""
    if form == "arrow-tcp":
        batch = pa.record_batch([pa.array([1, 2]), pa.array([0.5, 0.25])], names=["n", "x"])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
            writer.write_batch(batch)
        return [sink.getvalue().to_pybytes()]
    rng = random.Random(1)
    if form == "frames":
        frames = [rng.randbytes(12 * n) for n in (1, 2, 5, 1)]
        whole = b"".join(struct.pack("<I", len(each)) + each for each in frames)
        return [whole, whole + bytes(4), whole + bytes(5)]
    found = []
    for order in ((0, 1, 2, 3), (0, 2, 1, 5, 4), (0, 3, 3, 9)):
        sent = [struct.pack("<QQ", n, 6 * n) + rng.randbytes(12) for n in order]
        sent.append(struct.pack("<QQ", 10, 60))
        found.append(b"".join(bytes([len(each)]) + each for each in sent))
    return found
