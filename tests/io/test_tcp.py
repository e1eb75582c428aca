"""TCP as a source and as a sink: nothing is lost, and peers that misbehave get one sentence."""

from __future__ import annotations

import itertools
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.io.peers import (
    connect,
    frame,
    free_port,
    receives,
    resets,
    sends,
    server,
    thread_of,
)
from xstream.io.connection import WINDOW_BYTES, widen_window

MEMORIES = ("copy-always", "refcount-copy", "refcount-realloc", "refcount-lazy")


def received(address: str | int, *talks: Callable[[socket.socket], Any], **options: Any) -> Any:
    """The tuples of a source, and the run."""
    memory = options.pop("memory", "refcount-lazy")
    q = xs.Query()
    out = q.source(xs.io.tcp(address, **options), name="in").collect()
    run = q.run(memory=memory)
    return run[out], run


def values(segments: list[Any]) -> list[list[Any]]:
    return [np.asarray(segment).tolist() for segment in segments]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


FRAMES = st.lists(st.integers(1, 40), min_size=1, max_size=12)
CUTS = st.lists(st.integers(0, 5000), max_size=12)


# -- the bytes of a stream -------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(FRAMES, CUTS, st.sampled_from(MEMORIES))
def test_frames_cut_at_any_byte_are_tuples(widths: list[int], cuts: list[int], memory: str) -> None:
    samples = np.arange(sum(widths), dtype=np.int16)
    parts = np.split(samples, np.cumsum(widths)[:-1])
    data = b"".join(frame(part.tobytes()) for part in parts)
    with server(sends(*cut(data, cuts))) as address:
        got, run = received(address, dtype=np.int16, framing="length", memory=memory)
    assert values(got) == [part.tolist() for part in parts]
    assert [segment.start for segment in got] == [0, *np.cumsum(widths)[:-1].tolist()]
    assert run.stats["in"].counters == {
        "bytes": samples.nbytes, "frames": len(widths), "cut": 0, "connections": 1,
    }  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(FRAMES, CUTS, st.integers(1, 50), st.booleans(), st.booleans())
def test_windows_are_cut_from_the_stream_of_samples(
    widths: list[int], cuts: list[int], window: int, framed: bool, big_endian: bool
) -> None:
    dtype = np.dtype(">i4" if big_endian else "<i4")
    samples = np.arange(sum(widths)).astype(dtype)
    parts = np.split(samples, np.cumsum(widths)[:-1])
    data = b"".join(frame(p.tobytes()) if framed else p.tobytes() for p in parts)
    framing = "length" if framed else "none"
    with server(sends(*cut(data, cuts))) as address:
        got, _ = received(address, dtype=dtype, window=window, framing=framing)
    whole = samples.tolist()
    assert values(got) == [whole[i : i + window] for i in range(0, len(whole), window)]


def test_long_frames_and_windows_longer_than_blocks_arrive_whole() -> None:
    samples = np.random.default_rng(1).normal(size=1_500_000).astype(np.float32)
    parts = np.split(samples, [10, 16_384 + 10, 700_000])
    data = b"".join(frame(part.tobytes()) for part in parts)
    with server(sends(data)) as address:
        got, _ = received(address, framing="length")
    assert all(np.array_equal(a, b) for a, b in zip(got, parts, strict=True))
    with server(sends(samples.tobytes())) as address:
        got, _ = received(address, window=1_400_000)
    assert [len(each) for each in got] == [1_400_000, 100_000]
    assert np.array_equal(np.concatenate(got), samples)


def test_structured_records_become_fields_streams_or_rows() -> None:
    dtype = np.dtype([("time", ">u4"), ("level", "<f4"), ("ok", "?")])
    records = np.array([(1, 0.5, True), (2**32 - 1, -2.0, False), (3, 0.25, True)], dtype)
    with server(*[sends(records.tobytes())] * 3) as address:
        fields, _ = received(address, dtype=dtype, window=2)
        assert [[np.asarray(s).tolist() for s in row] for row in fields] == [
            [[1, 2**32 - 1], [0.5, -2.0], [True, False]],
            [[3], [0.25], [True]],
        ]
        rows, _ = received(address, dtype=dtype, layout="rows")
        assert rows == [(1, 0.5, True), (2**32 - 1, -2.0, False), (3, 0.25, True)]
        q = xs.Query()
        streams = q.sources(xs.io.tcp(address, dtype, layout="streams", window=3))
        kept = [stream.collect() for stream in streams]
        run = q.run()
        assert [values(run[each]) for each in kept][1] == [[0.5, -2.0, 0.25]]


@pytest.mark.parametrize("kind", ["i1", "u1", "<i2", ">u2", "<i4", ">i8", ">f8", "<f4", ">f4"])
def test_scalars_of_every_size_are_rows(kind: str) -> None:
    dtype = np.dtype([("a", kind), ("b", "<i8")])
    records = np.zeros(4, dtype)
    records["a"] = [1, 2, 100, -1 if np.dtype(kind).kind != "u" else 200]
    records["b"] = [-1, 2**62, -(2**62), 0]
    with server(sends(records.tobytes())) as address:
        rows, _ = received(address, dtype=dtype, layout="rows")
    assert rows == [tuple(record.item()) for record in records]


def test_channels_are_fields_or_interleaved() -> None:
    frames = np.arange(12, dtype=np.int16).reshape(6, 2)
    with server(*[sends(frames.tobytes())] * 2) as address:
        fields, _ = received(address, dtype=np.int16, channels=2, window=3, rate_hz=8.0)
        assert np.asarray(fields[1][1]).tolist() == [7, 9, 11]
        one, _ = received(
            address, dtype=np.int16, channels=2, window=4, layout="interleaved", rate_hz=8.0
        )
        assert values(one) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
        assert one[0].timebase.rate_hz == 16.0


def test_the_first_tuples_are_there_before_the_peer_closes() -> None:
    seen = threading.Event()

    def talk(peer: socket.socket) -> None:
        peer.sendall(frame(bytes(8)))
        assert seen.wait(10), "the first frame has not arrived"

    with server(talk) as address:
        q = xs.Query()
        q.source(xs.io.tcp(address, framing="length"), name="in").sink(lambda _: seen.set())
        run = q.run()
    latency = run.stats["in"].latency
    assert latency is not None
    assert latency.count == 1
    assert 0 < latency.p50_ns <= latency.worst_ns < 5e9


# -- peers that misbehave --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ((struct.pack("<I", 10**9), bytes(100)), "frame of 1000000000 bytes, and max_frame_bytes"),
        ((b"GET / HTTP/1.1\r\n\r\n",), "announces a frame of 542393671 bytes"),
        ((frame(bytes(6)),), "frame of 6 bytes, which is no multiple of the 4 bytes of a record"),
        ((frame(bytes(400))[:50],), "closed the connection in the middle of a record or frame"),
        ((frame(bytes(4)), b"\1\0"), "closed the connection in the middle of a record or frame"),
    ],
)
def test_wrong_frames_end_the_run_with_one_sentence(pieces: tuple[bytes, ...], said: str) -> None:
    with server(sends(*pieces)) as address, pytest.raises(xs.InputError, match=said) as raised:
        received(address, framing="length")
    assert address in str(raised.value)


def test_an_announced_gigabyte_is_not_allocated() -> None:
    manager = xs.memory_manager("refcount-lazy", limit_bytes=1 << 20)
    with (
        server(sends(struct.pack("<I", 1 << 30))) as address,
        pytest.raises(xs.InputError, match="max_frame_bytes"),
    ):
        received(address, framing="length", memory=manager)
    assert manager.stats().peak_bytes == 0


def test_half_a_record_at_the_end_is_an_error_after_the_whole_ones() -> None:
    got: list[Any] = []
    with server(sends(bytes(10))) as address:
        q = xs.Query()
        q.source(xs.io.tcp(address, window=1)).sink(got.append)
        with pytest.raises(xs.InputError, match="in the middle of a record"):
            q.run()
    assert len(got) == 2


def test_a_reset_connection_is_an_error() -> None:
    with (
        server(resets(bytes(8))) as address,
        pytest.raises(xs.InputError, match="is lost: Connection reset by peer"),
    ):
        received(address, window=2)


def test_a_refused_connection_is_an_error_that_names_the_address() -> None:
    port = free_port()
    with pytest.raises(xs.InputError, match=f"127.0.0.1:{port} cannot be reached: Connection ref"):
        received(port)
    q = xs.Query()
    q.source(xs.io.array(np.zeros(9))).write(xs.io.tcp(port))
    with pytest.raises(xs.InputError, match="cannot be reached"):
        q.run()
    with pytest.raises(xs.InputError, match="tried 3 times"):
        received(port, reconnect=xs.io.Reconnect(2, first_s=0.01))


def test_an_address_in_use_is_an_error_at_once() -> None:
    with (
        server() as address,
        pytest.raises(xs.InputError, match="cannot be listened on: Address already in use"),
    ):
        received(address, listen=True)


def test_an_unknown_host_is_an_error() -> None:
    with pytest.raises(xs.InputError, match=r"host 'nowhere\.invalid' is not known"):
        received("nowhere.invalid:9000")


# -- reconnecting ----------------------------------------------------------------------------


def test_a_lost_connection_is_made_again_and_windows_do_not_span_two() -> None:
    first, second = np.arange(5, dtype=np.float32), np.arange(5, 9, dtype=np.float32)
    talks = (
        resets(frame(first.tobytes()), frame(bytes(80))[:30]),
        sends(frame(second.tobytes()), frame(b"")),
    )
    with server(*talks) as address:
        got, run = received(
            address, framing="length", window=3, reconnect=xs.io.Reconnect(5, first_s=0.01)
        )
    lengths = [len(each) for each in got]
    assert sum(lengths) in (9, 9 + 6)  # whole records of the cut frame are kept
    assert values(got)[-2:] == [[5.0, 6.0, 7.0], [8.0]]
    assert got[-2].start == sum(lengths) - 4
    assert run.stats["in"].counters["connections"] == 2
    assert run.stats["in"].counters["cut"] == 1


def test_a_listener_takes_the_next_peer_after_a_lost_one() -> None:
    port = free_port()

    def peers() -> None:
        with connect(port) as peer:
            peer.sendall(frame(b"\1\2"))
        with connect(port) as peer:
            peer.sendall(frame(b"\3") + frame(b""))

    with thread_of(peers):
        got, run = received(port, dtype=np.uint8, framing="length", listen=True, reconnect=True)
    assert values(got) == [[1, 2], [3]]
    assert run.stats["in"].counters["connections"] == 2


def test_a_sink_sends_the_rest_through_the_next_connection() -> None:
    samples = np.arange(6_000_000, dtype=np.float32)  # more than the buffers of the system hold
    whole: list[bytes] = []

    def leaves_early(peer: socket.socket) -> None:
        peer.recv(100)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with server(leaves_early, receives(whole)) as address:
        q = xs.Query()
        sink = xs.io.tcp(address, framing="length", reconnect=xs.io.Reconnect(5, first_s=0.01))
        q.source(xs.io.array(samples, window=1000)).write(sink, name="out")
        run = q.run()
    data = b"".join(whole)
    assert data[-4:] == bytes(4)  # the mark of the end
    last = np.frombuffer(data[-4004:-4], np.float32)
    assert last.tolist() == samples[-1000:].tolist()
    assert len(data[:-4]) % 4004 == 0  # whole frames only
    assert run.stats["out"].counters["connections"] == 2


def test_bytes_that_are_lost_at_the_end_are_an_error() -> None:
    def leaves(peer: socket.socket) -> None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        time.sleep(0.3)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with server(leaves) as address:
        q = xs.Query()
        q.source(xs.io.array(np.zeros(200_000))).write(xs.io.tcp(address, reconnect=3))
        with pytest.raises(xs.InputError, match="is lost: Connection reset by peer, before it had"):
            q.run()


# -- sinks -----------------------------------------------------------------------------------


def sent(stream: Callable[[xs.Query], Any], **options: Any) -> bytes:
    got: list[bytes] = []
    with server(receives(got)) as address:
        q = xs.Query()
        stream(q).write(xs.io.tcp(address, **options))
        q.run()
    return b"".join(got)


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_sink_sends_the_samples_or_frames(memory: str) -> None:
    samples = np.arange(10, dtype=np.int16)
    source = xs.io.array(samples, window=4)
    assert sent(lambda q: q.source(source)) == samples.tobytes()
    framed = sent(lambda q: q.source(source).rewindow(5), framing="length")
    assert framed == frame(samples[:5].tobytes()) + frame(samples[5:].tobytes()) + frame(b"")
    split = sent(lambda q: q.source(source), framing="length", max_frame_bytes=6)
    parts = [samples[a:b] for a, b in ((0, 3), (3, 4), (4, 7), (7, 8), (8, 10))]
    assert split == b"".join(frame(part.tobytes()) for part in parts) + frame(b"")


def test_a_sink_sends_records_of_several_fields_and_in_other_byte_order() -> None:
    a, b = np.arange(5, dtype=np.int16), np.arange(5, dtype=np.float64) / 4

    def both(q: xs.Query) -> Any:
        return q.source(xs.io.array(a, window=2)).zip(q.source(xs.io.array(b, window=2)))

    dtype = np.dtype([("a", "<i2"), ("b", "<f8")])
    expected = np.zeros(5, dtype)
    expected["a"], expected["b"] = a, b
    assert sent(both) == expected.tobytes()
    swapped = np.dtype([("x", ">i2"), ("y", ">f8")])
    assert sent(both, dtype=swapped) == expected.astype(swapped).tobytes()
    rows = [(1, 0.5, True), (-2, 2.0, False)]
    schema = {"n": int, "x": "float32", "ok": bool}
    dtype = np.dtype([("n", "<i8"), ("x", "<f4"), ("ok", "?")])
    data = sent(lambda q: q.source(xs.io.iterable(rows, out=schema)))
    assert data == np.array(rows, dtype).tobytes()
    with pytest.raises(xs.SchemaError, match="carries int16, and dtype is float32"):
        xs.Query().source(xs.io.array(a)).write(xs.io.tcp(1, np.float32))


def test_a_peer_that_does_not_read_for_a_while_loses_nothing() -> None:
    samples = np.arange(4_000_000, dtype=np.float32)
    got: list[bytes] = []
    with server(receives(got, pause_s=1.0)) as address:
        q = xs.Query()
        q.source(xs.io.array(samples, window=4096)).write(xs.io.tcp(address))
        q.run()
    assert b"".join(got) == samples.tobytes()


def all_arrives_at_a_slow_consumer(windows: int, pause_s: float) -> None:
    """A peer that would need a tenth of the time has to wait for the consumer."""
    samples = np.arange(4_000 * windows, dtype=np.float32)
    with server(sends(*(part.tobytes() for part in np.split(samples, 10)))) as address:
        q = xs.Query()

        def slowly(segment: Any) -> Any:
            time.sleep(pause_s)
            return segment

        schema = xs.Segment(np.float32)
        out = q.source(xs.io.tcp(address, window=4000)).map(slowly, out=schema).collect()
        assert np.array_equal(np.concatenate(q.run()[out]), samples)


def test_a_consumer_ten_times_too_slow_loses_nothing() -> None:
    all_arrives_at_a_slow_consumer(50, 0.01)


@pytest.mark.slow
def test_a_slow_consumer_loses_nothing_over_a_minute() -> None:
    # 24 MB: more than the buffers of the system, so that the peer has to wait.
    all_arrives_at_a_slow_consumer(1_500, 0.04)


# -- stopping --------------------------------------------------------------------------------


def stopped_after(q: xs.Query, seconds: float = 0.2) -> tuple[xs.Run, float]:
    stop = threading.Event()
    began = time.monotonic()
    threading.Timer(seconds, stop.set).start()
    run = q.run(stop=stop)
    return run, time.monotonic() - began - seconds


@pytest.mark.parametrize("listen", [False, True])
def test_a_stop_ends_a_source_that_waits(listen: bool) -> None:
    held = threading.Event()
    q = xs.Query()
    if listen:
        q.source(xs.io.tcp(free_port(), listen=True)).count()
        run, late_s = stopped_after(q)
    else:
        with server(lambda peer: held.wait(10)) as address:
            q.source(xs.io.tcp(address)).count()
            run, late_s = stopped_after(q)
            held.set()
    assert run.stopped
    assert late_s < 1.0


def test_a_stop_ends_a_sink_whose_peer_does_not_read() -> None:
    held = threading.Event()
    with server(lambda peer: held.wait(20)) as address:
        q = xs.Query()
        q.source(xs.io.array(np.zeros(20_000_000), window=4096)).write(
            xs.io.tcp(address), name="out"
        )
        run, late_s = stopped_after(q, 0.5)
        held.set()
    assert run.stopped
    assert late_s < 4.0


@pytest.mark.parametrize(
    "declared",
    [
        "q.source(xs.io.tcp({port}, listen=True)).count()",
        "q.source(xs.io.udp({port})).count()",
        "q.source(xs.io.array(np.zeros(10**6))).write(xs.io.tcp({port}, listen=True))",
    ],
)
def test_ctrl_c_ends_what_waits_for_a_peer(declared: str) -> None:
    script = f"""
import signal, numpy as np, xstream as xs
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
q = xs.Query()
{declared.format(port=free_port())}
told = []
run = q.run(progress=lambda run: told or (told.append(1), print("runs", flush=True)))
print(run.interrupted)
"""
    if "write" in declared:  # the engine waits inside the sink, and reports no progress
        script = script.replace("q.run(progress", "print('runs', flush=True) or q.run(progress")
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert out.splitlines()[-1] == "True"


# -- addresses -------------------------------------------------------------------------------


def test_ipv6_works_in_both_directions() -> None:
    samples = np.arange(100, dtype=np.float32)
    with server(sends(samples.tobytes()), host="::1") as address:
        got, _ = received(address, window=100)
    assert values(got) == [samples.tolist()]
    got_bytes: list[bytes] = []
    with server(receives(got_bytes), host="::1") as address:
        q = xs.Query()
        q.source(xs.io.array(samples)).write(xs.io.tcp(address))
        q.run()
    assert b"".join(got_bytes) == samples.tobytes()


@pytest.mark.parametrize("address", ["", "9000x", "host", "host:", ":0", "host:99999", "::1", None])
def test_an_address_that_is_none_is_refused(address: Any) -> None:
    with pytest.raises(xs.GraphError, match="an address is 'host:port'"):
        xs.io.tcp(address)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"framing": "lines"}, "framing is 'none', 'length'"),
        ({"window": 0}, "window is at least 1"),
        ({"max_frame_bytes": 0}, "max_frame_bytes is at least 1"),
        ({"reconnect": -1}, "reconnect is a number of attempts"),
        ({"layout": "rows", "dtype": np.complex64}, "a row has booleans"),
        ({"dtype": object}, "cannot hold"),
        ({"rate_hz": -1.0}, "rate"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, said: str) -> None:
    with pytest.raises(xs.XStreamError, match=said):
        xs.Query().source(xs.io.tcp(9000, **options))


def test_a_connection_begins_with_a_large_receive_buffer() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as peer,
        listener.accept()[0] as receiving,
    ):
        small = receiving.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        widen_window(receiving)
        large = receiving.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        peer.sendall(b"a")
        assert receiving.recv(10) == b"a"  # it does not wait for megabytes
    if small < WINDOW_BYTES // 4:
        assert large > 2 * small


def test_a_socket_says_that_it_has_no_position() -> None:
    with server(sends(bytes(4))) as address:
        q = xs.Query()
        q.source(xs.io.tcp(address), name="in").count()
        assert "in" not in q.run().positions()
    with pytest.raises(xs.GraphError, match="no position to begin at: what was received cannot"):
        q.run(positions={"in": {"sample": 3}})
