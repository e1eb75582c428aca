"""UDP as a source and as a sink: every datagram is accounted for."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.io.peers import free_port, thread_of
from tests.reference.datagrams import Order

MEMORIES = ("copy-always", "refcount-copy", "refcount-realloc", "refcount-lazy")


def udp_port(family: int = socket.AF_INET) -> int:
    return free_port(family, socket.SOCK_DGRAM)


def wait_until_bound(port: int, host: str = "127.0.0.1") -> None:
    """Wait until a source has bound the port."""
    table = Path("/proc/net/udp6" if ":" in host else "/proc/net/udp")
    for _ in range(2000):
        if f":{port:04X} " in table.read_text():
            return
        time.sleep(0.005)
    raise AssertionError("no source has bound its socket")


def send(port: int, datagrams: Sequence[bytes], host: str = "127.0.0.1") -> None:
    wait_until_bound(port, host)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        for datagram in datagrams:
            sender.sendto(datagram, (host, port))


def received(datagrams: Sequence[bytes], **options: Any) -> tuple[list[Any], xs.Run]:
    """The tuples of a source that these datagrams are sent to."""
    memory = options.pop("memory", "refcount-lazy")
    port = udp_port()
    q = xs.Query()
    out = q.source(xs.io.udp(port, **options), name="in").collect()
    with thread_of(lambda: send(port, datagrams)):
        run = q.run(memory=memory)
    return run[out], run


def values(segments: list[Any]) -> list[list[Any]]:
    return [np.asarray(segment).tolist() for segment in segments]


def numbered(number: int, sample: int, samples: np.ndarray[Any, Any]) -> bytes:
    return struct.pack("<QQ", number, sample) + samples.tobytes()


def stream_of(widths: Sequence[int]) -> tuple[list[np.ndarray[Any, Any]], list[bytes]]:
    """The samples of datagrams, and the datagrams with headers."""
    samples = np.arange(sum(widths), dtype=np.int32)
    parts = np.split(samples, np.cumsum(widths)[:-1])
    starts = np.cumsum([0, *widths[:-1]])
    return parts, [numbered(i, int(starts[i]), part) for i, part in enumerate(parts)]


# -- without a header ------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from((1, 2, 10, 10, 10, 300)), min_size=1, max_size=200),
    st.sampled_from(MEMORIES),
)
def test_every_datagram_is_a_tuple(widths: list[int], memory: str) -> None:
    parts, datagrams = stream_of(widths)
    got, run = received([*(d[16:] for d in datagrams), b""], dtype=np.int32, memory=memory)
    assert values(got) == [part.tolist() for part in parts]
    assert [segment.start for segment in got] == np.cumsum([0, *widths[:-1]]).tolist()
    counters = run.stats["in"].counters
    assert counters["datagrams"] == len(widths)
    assert counters["bytes"] == 4 * sum(widths)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from((1, 2, 10, 10, 300, 2000)), min_size=1, max_size=100),
    st.integers(1, 700),
    st.sampled_from(MEMORIES),
    st.booleans(),
)
def test_windows_are_cut_from_datagrams(
    widths: list[int], window: int, memory: str, big_endian: bool
) -> None:
    parts, _ = stream_of(widths)
    dtype = np.dtype(">i4" if big_endian else "<i4")
    sent = [part.astype(dtype).tobytes() for part in parts]
    got, _ = received([*sent, b""], dtype=dtype, window=window, memory=memory)
    whole = np.concatenate(parts).tolist()
    assert values(got) == [whole[i : i + window] for i in range(0, len(whole), window)]


def test_structured_records_become_rows() -> None:
    dtype = np.dtype([("car", "<u2"), ("speed", ">f4")])
    records = np.array([(7, 0.5), (65535, -2.0), (3, 1.0)], dtype)
    rows, _ = received(
        [records[:2].tobytes(), records[2:].tobytes(), b""], dtype=dtype, layout="rows"
    )
    assert rows == [(7, 0.5), (65535, -2.0), (3, 1.0)]
    fields, _ = received([records.tobytes(), b""], dtype=dtype)
    assert [np.asarray(column).tolist() for column in fields[0]] == [
        [7, 65535, 3],
        [0.5, -2.0, 1.0],
    ]


# -- lost, reordered and duplicated datagrams -------------------------------------------------


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Widths of datagrams, and the order in which some of them arrive; the first and the end do."""
    widths = draw(st.lists(st.sampled_from((3, 3, 3, 5)), min_size=2, max_size=40))
    places = []
    for number in range(1, len(widths)):
        times = draw(st.sampled_from((0, 1, 1, 1, 1, 2)))
        places += [
            (number + draw(st.sampled_from((0, 0, 0, 1, 2, 6))), number) for _ in range(times)
        ]
    return widths, [0, *(number for _, number in sorted(places))]


@settings(max_examples=80, deadline=None)
@given(arrivals(), st.sampled_from((0, 1, 2, 8)), st.sampled_from(MEMORIES))
def test_datagrams_are_delivered_as_the_reference_says(
    arriving: tuple[list[int], list[int]], reorder: int, memory: str
) -> None:
    widths, numbers = arriving
    parts, datagrams = stream_of(widths)
    end = numbered(len(widths), sum(widths), np.zeros(0))
    options = {"dtype": np.int32, "sequence": True, "reorder": reorder, "reorder_s": 60.0}
    got, run = received(
        [*(datagrams[n] for n in numbers), end, end], gap="split", memory=memory, **options
    )
    expected = Order(reorder).put_all([*numbers, len(widths)])
    order = [number for number in expected.delivered if number < len(widths)]
    assert values(got) == [parts[number].tolist() for number in order]
    assert [segment.start for segment in got] == [sum(widths[:number]) for number in order]
    counters = run.stats["in"].counters
    assert counters["datagrams"] == len(order)
    assert counters["lost"] == expected.lost
    assert counters["late"] == expected.late
    assert counters["datagrams"] + counters["lost"] + counters["late"] == len(widths)
    assert counters["duplicates"] == expected.duplicates
    missing = set(range(len(widths))) - set(order)
    assert counters["lost_samples"] == sum(widths[number] for number in missing)


@settings(max_examples=60, deadline=None)
@given(arrivals(), st.integers(1, 9))
def test_missing_samples_are_filled(arriving: tuple[list[int], list[int]], window: int) -> None:
    widths, numbers = arriving
    parts, datagrams = stream_of(widths)
    datagrams = [
        d[:16] + p.astype(np.float32).tobytes() for d, p in zip(datagrams, parts, strict=True)
    ]
    end = numbered(len(widths), sum(widths), np.zeros(0))
    got, _ = received(
        [*(datagrams[n] for n in numbers), end, end], sequence=True, gap="null", window=window,
        reorder=2, reorder_s=60.0,
    )  # fmt: skip
    whole = np.concatenate(parts).astype(np.float32)
    order = Order(2).put_all([*numbers, len(widths)]).delivered
    for number in set(range(len(widths))) - set(order):
        whole[sum(widths[:number]) : sum(widths[: number + 1])] = np.nan
    assert [len(each) for each in got[:-1]] == [window] * (len(got) - 1)
    np.testing.assert_array_equal(np.concatenate(got), whole)


def test_a_missing_datagram_is_an_error_by_default() -> None:
    _, datagrams = stream_of([4, 4, 4, 4])
    sent = [datagrams[0], datagrams[3], numbered(4, 16, np.zeros(0))]
    with pytest.raises(
        xs.InputError, match=r"2 datagrams are missing before number 3 \(8 samples\)"
    ):
        received(sent, dtype=np.int32, sequence=True)


def test_missing_datagrams_are_given_up_when_others_have_waited() -> None:
    _, datagrams = stream_of([4, 4, 4])
    seen = threading.Event()
    port = udp_port()
    q = xs.Query()
    source = xs.io.udp(port, np.int32, sequence=True, gap="split", reorder=32, reorder_s=0.1)
    q.source(source, name="in").sink(lambda seg: seen.set() if seg.start == 8 else None)

    def sender() -> None:
        send(port, [datagrams[0], datagrams[2]])
        assert seen.wait(10), "the third datagram still waits for the second"
        send(port, [numbered(3, 12, np.zeros(0))])

    with thread_of(sender):
        assert q.run().stats["in"].counters["lost"] == 1


def test_headers_of_other_layouts_and_wrapping_numbers_are_read() -> None:
    header = np.dtype([("flags", "u1"), ("sequence", ">u2")])
    numbers = [65_533, 65_534, 0, 65_535, 1, 3]
    sent = [b"\7" + struct.pack(">H", n) + bytes([n % 256] * 4) for n in numbers]
    end = b"\0" + struct.pack(">H", 4)
    got, run = received([*sent, end], dtype=np.uint8, sequence=header, gap="split")
    assert values(got) == [[n % 256] * 4 for n in (65_533, 65_534, 65_535, 0, 1, 3)]
    assert [segment.start for segment in got] == [0, 4, 8, 12, 16, 24]
    assert run.stats["in"].counters["lost_samples"] == 4


def test_a_sender_that_begins_anew_is_followed_and_one_stray_is_not() -> None:
    parts, datagrams = stream_of([2, 2, 2, 2])
    far = numbered(2**40, 2**60, parts[0])
    again = [numbered(10**9 + i, i * 2, part) for i, part in enumerate(parts)]
    end = numbered(10**9 + 4, 8, np.zeros(0))
    got, run = received(
        [datagrams[0], far, *datagrams[1:], *again, end], dtype=np.int32, sequence=True
    )
    assert values(got) == [p.tolist() for p in (*parts, *parts[1:])]
    assert [segment.start for segment in got] == [0, 2, 4, 6, 8, 10, 12]
    counters = run.stats["in"].counters
    assert (counters["strays"], counters["restarts"], counters["lost"]) == (2, 1, 0)


# -- wrong datagrams -------------------------------------------------------------------------


@pytest.mark.parametrize("datagram", [b"123", bytes(16 + 5), b"x" * 15])
def test_a_datagram_of_a_wrong_size_is_an_error_or_dropped(datagram: bytes) -> None:
    sequence = len(datagram) > 3
    end = numbered(1, 2, np.zeros(0)) if sequence else b""
    good = numbered(0, 0, np.zeros(2, np.float32)) if sequence else bytes(8)
    with pytest.raises(xs.InputError, match=f"a datagram of {len(datagram)} bytes has arrived"):
        received([datagram, end], sequence=sequence)
    got, run = received([datagram, good, datagram, end], sequence=sequence, on_error="drop")
    assert values(got) == [[0.0, 0.0]]
    assert run.stats["in"].counters["malformed"] == 2


def test_a_huge_gap_is_not_filled() -> None:
    sent = [numbered(0, 0, np.zeros(2, np.float32)), numbered(9, 2**40, np.zeros(2, np.float32))]
    with pytest.raises(xs.InputError, match="samples are missing before datagram 9, and max_gap"):
        received([*sent, numbered(10, 2**40 + 2, np.zeros(0))], sequence=True, gap="null")


def test_an_idle_stream_ends_if_asked() -> None:
    got, run = received([bytes(8)], idle_s=0.1)
    assert len(got) == 1
    assert not run.stopped


def test_an_address_that_cannot_be_bound_is_an_error() -> None:
    port = udp_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", port))
        q = xs.Query()
        q.source(xs.io.udp(port)).count()
        with pytest.raises(xs.InputError, match="cannot be bound: Address already in use"):
            q.run()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gap": "zero"}, "gap is 'error', 'null', 'split'"),
        ({"gap": "null"}, "gap='null' needs sequence="),
        ({"sequence": np.float32}, "structured dtype with a whole number 'sequence'"),
        ({"reorder": -1}, "reorder is at least 0"),
        ({"dtype": np.dtype([("a", "f8"), ("b", "f8")]), "datagram_bytes": 10}, "does not fit"),
        ({"on_error": "ignore"}, "on_error is 'raise', 'drop'"),
        ({"idle_s": 0.0}, "idle_s is a finite number"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, said: str) -> None:
    with pytest.raises(xs.XStreamError, match=said):
        xs.io.udp(9000, **options)


# -- sinks, and all of it --------------------------------------------------------------------


def caught(port: int, into: list[bytes], end: Callable[[bytes], bool]) -> Callable[[], None]:
    """A socket that is bound now, and receives until the end."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", port))
    receiver.settimeout(10)

    def body() -> None:
        with receiver:
            while not end(datagram := receiver.recv(65536)):
                into.append(datagram)

    return body


def test_a_sink_splits_segments_into_datagrams_with_headers() -> None:
    port, got = udp_port(), list[bytes]()
    samples = np.arange(10, dtype=np.int16)
    with thread_of(caught(port, got, lambda datagram: len(datagram) == 16)):
        q = xs.Query()
        target = xs.io.udp(port, sequence=True, datagram_bytes=16 + 6)
        q.source(xs.io.array(samples, window=5)).write(target, name="out")
        run = q.run()
    parts = [(0, 3), (3, 5), (5, 8), (8, 10)]
    assert got == [numbered(i, a, samples[a:b]) for i, (a, b) in enumerate(parts)]
    assert run.stats["out"].counters["datagrams"] == 4


def test_a_sink_packs_rows_and_does_without_a_receiver() -> None:
    port, got = udp_port(), list[bytes]()
    rows = [(i, i / 2) for i in range(6)]
    with thread_of(caught(port, got, lambda datagram: not datagram)):
        q = xs.Query()
        q.source(xs.io.iterable(rows, out={"n": "int32", "x": float})).write(xs.io.udp(port))
        q.run()
    dtype = np.dtype([("n", "<i4"), ("x", "<f8")])
    assert np.frombuffer(b"".join(got), dtype).tolist() == rows
    q = xs.Query()
    q.source(xs.io.array(np.zeros(1000), window=10)).write(xs.io.udp(port))
    q.run()  # nobody is there, which UDP does not mind


def test_what_a_sink_sends_a_source_receives() -> None:
    samples = np.random.default_rng(2).normal(size=20_000).astype(np.float32)
    port = udp_port()
    sender = xs.Query()
    source = xs.io.array(samples, rate_hz=100_000.0, window=500)
    sender.source(xs.io.paced(source)).write(xs.io.udp(port, sequence=True))
    q = xs.Query()
    out = q.source(xs.io.udp(port, sequence=True, rate_hz=100_000.0), name="in").collect()

    def body() -> None:
        wait_until_bound(port)
        sender.run()

    with thread_of(body):
        run = q.run()
    assert np.array_equal(np.concatenate(run[out]), samples)
    latency = run.stats["in"].latency
    assert latency is not None
    assert 0 < latency.p50_ns <= latency.p99_ns <= latency.worst_ns < 5e9


def test_ipv6_datagrams_arrive() -> None:
    port = udp_port(socket.AF_INET6)
    q = xs.Query()
    out = q.source(xs.io.udp(f"[::1]:{port}")).collect()
    with thread_of(lambda: send(port, [np.ones(3, np.float32).tobytes(), b""], "::1")):
        assert values(q.run()[out]) == [[1.0, 1.0, 1.0]]


def slow_consumer(seconds: float, sequence: bool = True) -> tuple[dict[str, int], int]:
    """The counters of a source whose consumer takes ten times as long as datagrams come."""
    port, pause_s = udp_port(), 0.0002
    count = int(seconds / pause_s)
    q = xs.Query()
    gap = "split" if sequence else "error"
    source = xs.io.udp(port, np.int32, sequence=sequence, gap=gap, buffer_bytes=1 << 16)
    stream = q.source(source, name="in")
    stream.sink(lambda _: time.sleep(10 * pause_s))
    sent = 0

    def sender() -> None:
        nonlocal sent
        wait_until_bound(port)
        samples = np.arange(100, dtype=np.int32)
        began = time.monotonic()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            for sent in range(1, count + 1):
                out.sendto(numbered(sent - 1, (sent - 1) * 100, samples), ("127.0.0.1", port))
                time.sleep(max(began + sent * pause_s - time.monotonic(), 0))
                if time.monotonic() - began > seconds:
                    break
            while not ended.wait(0.05):  # until one gets through
                out.sendto(numbered(sent, sent * 100, samples[:0]), ("127.0.0.1", port))

    ended = threading.Event()
    with thread_of(sender):
        run = q.run()
        ended.set()
    return dict(run.stats["in"].counters), sent


def test_every_datagram_is_accounted_for_if_the_consumer_is_too_slow() -> None:
    counters, sent = slow_consumer(1.0)
    assert counters["lost"] > 0
    assert counters["datagrams"] + counters["lost"] + counters["late"] == sent
    assert counters["dropped"] >= counters["lost"]  # and ends that were dropped


@pytest.mark.slow
def test_every_datagram_is_accounted_for_over_a_minute() -> None:
    counters, sent = slow_consumer(60.0)
    assert counters["lost"] > 0
    assert counters["datagrams"] + counters["lost"] + counters["late"] == sent


def test_a_stop_ends_a_source_without_datagrams() -> None:
    stop = threading.Event()
    q = xs.Query()
    q.source(xs.io.udp(udp_port())).count()
    began = time.monotonic()
    threading.Timer(0.2, stop.set).start()
    assert q.run(stop=stop).stopped
    assert time.monotonic() - began < 2.0
