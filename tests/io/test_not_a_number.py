"""`nan=` of sockets: NaNs that are received are kept, replaced by 0, or end the run."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.io.peers import connect, frame, free_port, sends, server

NAN = float("nan")
RECORD = np.dtype([("n", "<i4"), ("x", ">f4"), ("y", "<f8")])


def received(source: Any) -> tuple[list[Any], str]:
    """The tuples that reached a sink, and the error that ended the run."""
    seen: list[Any] = []
    q = xs.Query()
    q.source(source).sink(lambda *values: seen.append(values))
    try:
        q.run()
    except xs.InputError as error:
        return seen, str(error)
    return seen, ""


def samples_of(seen: list[Any], field: int = 0) -> list[Any]:
    return [each for values in seen for each in np.asarray(values[field]).tolist()]


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8", "<f2", "<c8", ">c16"])
def test_samples_over_tcp(dtype: str) -> None:
    samples = np.arange(1, 10_001).astype(dtype)
    samples[[3, 7_000]] = NAN
    if samples.dtype.kind == "c":
        samples[3] = complex(1, NAN)
    wanted = samples.copy()
    wanted[[3, 7_000]] = 0
    with server(*[sends(samples.tobytes())] * 3) as address:
        seen, error = received(xs.io.tcp(address, dtype, window=100, nan="zero"))
        assert not error
        assert samples_of(seen) == wanted.tolist()
        seen, error = received(xs.io.tcp(address, dtype, window=1, nan="error"))
        assert error == f"tcp {address}: sample 3 is not a number"
        assert samples_of(seen) == samples[:3].tolist()
        seen, error = received(xs.io.tcp(address, dtype, window=100))
        assert not error
        assert np.isnan(samples_of(seen)).sum() == 2


def test_several_channels_over_tcp() -> None:
    samples = np.arange(60, dtype="<f4").reshape(20, 3)
    samples[11, 1] = NAN
    with server(*[sends(samples.tobytes())] * 3) as address:
        source = xs.io.tcp(address, "<f4", window=1, channels=3, nan="error")
        seen, error = received(source)
        assert error.endswith("sample 11 is not a number")
        assert samples_of(seen, 2) == samples[:11, 2].tolist()
        source = xs.io.tcp(address, "<f4", window=3, channels=3, layout="interleaved", nan="error")
        seen, error = received(source)
        assert error.endswith("sample 11 is not a number")
        assert samples_of(seen) == samples[:11].ravel().tolist()
        source = xs.io.tcp(address, "<f4", window=6, channels=3, layout="interleaved", nan="zero")
        assert samples_of(received(source)[0]) == np.nan_to_num(samples).ravel().tolist()


def test_records_as_rows_over_tcp() -> None:
    rows = np.array([(1, 0.5, 1.0), (2, NAN, 2.0), (3, 1.5, NAN)], RECORD)
    with server(*[sends(rows.tobytes())] * 2) as address:
        seen, error = received(xs.io.tcp(address, RECORD, layout="rows", nan="error"))
        assert error.endswith("sample 1 is not a number")
        assert seen == [(1, 0.5, 1.0)]
        seen, error = received(xs.io.tcp(address, RECORD, layout="rows", nan="zero"))
        assert seen == [(1, 0.5, 1.0), (2, 0.0, 2.0), (3, 1.5, 0.0)]


def test_a_frame_with_a_nan_is_left_out_as_a_whole() -> None:
    frames = [[1, 2, 3], [4, 5], [6, NAN]]
    data = b"".join(frame(np.float32(each).tobytes()) for each in frames) + bytes(4)
    with server(sends(data)) as address:
        seen, error = received(xs.io.tcp(address, np.float32, framing="length", nan="error"))
    assert [np.asarray(values[0]).tolist() for values in seen] == frames[:2]
    assert error.endswith("sample 6 is not a number")


@pytest.mark.parametrize("nan", ["error", "zero"])
def test_what_stands_for_lost_datagrams_is_no_nan_that_was_received(nan: str) -> None:
    port = free_port(type_=socket.SOCK_DGRAM)
    source = xs.io.udp(port, np.float32, sequence=True, gap="null", nan=nan, idle_s=2.0)

    def sensor() -> None:
        time.sleep(0.5)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number, values in ((0, [1, 2]), (2, [5, 6]), (3, [7, NAN]), (4, [9, 10])):
                header = struct.pack("<QQ", number, 2 * number)
                sender.sendto(header + np.float32(values).tobytes(), ("127.0.0.1", port))
            sender.sendto(struct.pack("<QQ", 5, 10), ("127.0.0.1", port))

    threading.Thread(target=sensor, daemon=True).start()
    seen, error = received(source)
    samples = samples_of(seen)
    assert samples[:2] == [1, 2]
    assert np.isnan(samples[2:4]).all()
    assert samples[4:] == ([5, 6, 7, 0, 9, 10] if nan == "zero" else [5, 6])
    assert error == ("" if nan == "zero" else f"udp 127.0.0.1:{port}: sample 7 is not a number")


def test_messages_over_zmq() -> None:
    import zmq

    for nan, wanted in (("zero", [1, 2, 0, 4]), ("error", [1, 2])):
        address = f"tcp://127.0.0.1:{free_port()}"
        with zmq.Context() as context, context.socket(zmq.PUSH) as sender:
            sender.connect(address)
            for values in ([1], [2, NAN, 4], []):
                sender.send(np.float32(values).tobytes())
            seen, error = received(xs.io.zmq(address, np.float32, window=1, bind=True, nan=nan))
        assert samples_of(seen) == wanted
        assert error == ("" if nan == "zero" else f"zmq {address}: sample 2 is not a number")


def test_the_policy_is_checked_when_it_is_given() -> None:
    for kind in (xs.io.tcp, xs.io.udp):
        with pytest.raises(xs.GraphError, match="nan is 'keep', 'error', 'zero', not 'drop'"):
            kind(9, nan="drop")
    with pytest.raises(xs.GraphError, match="zmq: nan is 'keep', 'error', 'zero', not 'drop'"):
        xs.io.zmq("tcp://127.0.0.1:9", nan="drop")


def test_a_listener_names_the_sample_across_connections() -> None:
    port = free_port()
    source = xs.io.tcp(port, np.float32, window=2, listen=True, reconnect=True, nan="error")

    def peers() -> None:
        for values in ([1, 2, 3], [4, NAN]):
            with connect(port) as peer:
                peer.sendall(np.float32(values).tobytes())

    threading.Thread(target=peers, daemon=True).start()
    seen, error = received(source)
    assert samples_of(seen)[:2] == [1, 2]
    assert error.endswith("sample 4 is not a number")
