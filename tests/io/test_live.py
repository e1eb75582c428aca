"""Arrow streams over TCP, ZeroMQ and Kafka, as sources and as sinks."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import xstream as xs
from tests.io.peers import free_port, receives, sends, server, thread_of

SAMPLES = np.arange(10_000, dtype=np.float32)
TABLE = np.dtype([("n", "<i8"), ("x", "<f8")])
ROWS = [(i, i / 4) for i in range(50)]


def stream_bytes(batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch([pa.array(each) for each in columns.values()], names=list(columns))


GOOD = stream_bytes([batch(n=[1, 2], x=[0.5, 0.25]), batch(n=[3], x=[float("nan")])])


def passed(target: Any, origin: Any, **options: Any) -> tuple[Any, xs.Run]:
    """Samples that one query sends and another one receives."""
    q, send = xs.Query("receive"), xs.Query("send")
    send.source(xs.io.array(SAMPLES, rate_hz=8_000.0, window=500)).write(target)
    out = q.source(origin, name="in").collect()
    with thread_of(send.run):
        run = q.run()
    return run[out], run


# -- Arrow -----------------------------------------------------------------------------------


def test_an_arrow_stream_is_received() -> None:
    with server(sends(GOOD[:100], GOOD[100:])) as address:
        q = xs.Query()
        out = q.source(xs.io.arrow(f"tcp://{address}", dtype=TABLE, layout="rows")).collect()
        rows = q.run()[out]
    assert rows[:2] == [(1, 0.5), (2, 0.25)]
    assert rows[2][0] == 3
    assert np.isnan(rows[2][1])


def test_arrow_passes_from_one_query_to_another() -> None:
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    got, run = passed(
        xs.io.arrow(address, reconnect=100),
        xs.io.arrow(address, dtype=[("value", "f4")], listen=True),
    )
    assert np.array_equal(np.concatenate(got), SAMPLES)
    assert run.stats["in"].latency is not None


def test_a_sink_sends_a_stream_that_pyarrow_reads() -> None:
    got: list[bytes] = []
    with server(receives(got)) as address:
        q = xs.Query()
        source = xs.io.iterable(ROWS, out={"n": int, "x": float})
        q.source(source).write(xs.io.arrow(f"tcp://{address}"))
        q.run()
    table = pa.ipc.open_stream(b"".join(got)).read_all()
    assert [tuple(row.values()) for row in table.to_pylist()] == ROWS


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (GOOD[:-8], "closed the connection before the end of the stream"),
        (GOOD[:-30], "no Arrow IPC stream|before the end"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(50), "announces a message of 2,147,483,647"),
        (b"GET / HTTP/1.1\r\n\r\n" + bytes(20), "announces a message|no Arrow IPC stream"),
        (stream_bytes([batch(n=[1], y=[0.5])]), "the peer sends .n: int64, y: double., and dtype"),
        (stream_bytes([batch(n=[None, 1], x=[0.5, 1.0])]), "column 'n' has no value"),
    ],
)
def test_wrong_arrow_streams_are_one_sentence(data: bytes, said: str) -> None:
    with server(sends(data)) as address:
        q = xs.Query()
        q.source(xs.io.arrow(f"tcp://{address}", dtype=TABLE, layout="rows")).count()
        with pytest.raises(xs.InputError, match=said):
            q.run()


def test_a_stop_ends_an_arrow_source_and_an_arrow_sink() -> None:
    held = threading.Event()
    with server(lambda peer: held.wait(20), lambda peer: held.wait(20)) as address:
        for query in (xs.Query("in"), xs.Query("out")):
            if query.name == "in":
                query.source(xs.io.arrow(f"tcp://{address}", dtype=TABLE, layout="rows")).count()
            else:
                source = xs.io.array(np.zeros(20_000_000))
                query.source(source).write(xs.io.arrow(f"tcp://{address}"))
                held.clear()
            stop = threading.Event()
            threading.Timer(0.3, stop.set).start()
            began = time.monotonic()
            assert query.run(stop=stop).stopped
            assert time.monotonic() - began < 6
            held.set()


# -- ZeroMQ ----------------------------------------------------------------------------------


def test_zmq_passes_from_one_query_to_another() -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    got, _ = passed(xs.io.zmq(address), xs.io.zmq(address, np.float32, window=2500, bind=True))
    assert np.array_equal(np.concatenate(got), SAMPLES)
    assert [len(each) for each in got] == [2500] * 4


def test_a_zmq_message_of_a_wrong_size_is_one_sentence() -> None:
    import zmq

    address = f"tcp://127.0.0.1:{free_port()}"
    with zmq.Context() as context, context.socket(zmq.PUSH) as sender:
        sender.connect(address)
        sender.send(b"12345")
        q = xs.Query()
        q.source(xs.io.zmq(address, np.float32, bind=True)).count()
        with pytest.raises(xs.InputError, match="message of 5 bytes is no multiple of the 4 bytes"):
            q.run()


def test_a_zmq_address_that_is_none_is_one_sentence() -> None:
    q = xs.Query()
    q.source(xs.io.zmq("nowhere", bind=True)).count()
    with pytest.raises(xs.InputError, match=r"^zmq nowhere: Invalid argument"):
        q.run()


# -- Kafka -----------------------------------------------------------------------------------


@pytest.fixture
def broker() -> Iterator[str]:
    """librdkafka's mock cluster, which lives in a client."""
    import confluent_kafka

    mock = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    mock.list_topics(timeout=10)
    found = mock.list_topics(timeout=10).brokers
    yield ",".join(f"{each.host}:{each.port}" for each in found.values())
    mock.flush(1)


def test_kafka_passes_from_one_query_to_another(broker: str) -> None:
    send, q = xs.Query("send"), xs.Query("receive")
    source = xs.io.iterable(ROWS, out={"n": int, "x": float})
    send.source(source).write(xs.io.kafka(broker, "rows"))
    send.run()
    out = q.source(xs.io.kafka(broker, "rows", TABLE, layout="rows")).collect()
    assert q.run()[out] == ROWS


def test_kafka_stops_while_it_waits(broker: str) -> None:
    q = xs.Query()
    q.source(xs.io.kafka(broker, "nothing", np.float32)).count()
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    assert q.run(stop=stop).stopped


@pytest.mark.parametrize("sends", [False, True])
def test_kafka_without_a_broker_is_one_sentence_and_can_be_stopped(
    sends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(**options: Any) -> None:
        q, topic = xs.Query(), xs.io.kafka(f"127.0.0.1:{free_port()}", "t", np.float32)
        if sends:
            q.source(xs.io.array(np.ones(10, np.float32))).write(topic)
        else:
            q.source(topic).count()
        q.run(**options)

    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    run(stop=stop)
    monkeypatch.setattr(sys.modules["xstream.io.kafka"], "_REACH_S", 0.2)
    with pytest.raises(xs.InputError, match=r"kafka 127\.0\.0\.1:\d+ cannot be reached: "):
        run()


def produced(broker: str, topic: str, messages: list[Any]) -> None:
    """Messages of samples, and the empty one that ends the stream."""
    import confluent_kafka

    producer = confluent_kafka.Producer({"bootstrap.servers": broker, "log_level": 0})
    for values in [*messages, []]:
        producer.produce(topic, np.float32(values).tobytes(), partition=0)
    assert producer.flush(10) == 0


def test_kafka_goes_on_at_the_offset_where_a_run_was_stopped(broker: str) -> None:
    sizes = [3, 1, 7, 2, 5] * 30
    numbers = np.arange(sum(sizes), dtype=np.float32)
    produced(broker, "numbers", np.split(numbers, np.cumsum(sizes)[:-1]))
    positions: Any = {}
    seen: list[float] = []
    for _ in range(200):
        stop, limit = threading.Event(), len(seen) + 41

        def take(segment: xs.SigSeg, stop: threading.Event = stop, limit: int = limit) -> None:
            seen.extend(np.asarray(segment).tolist())
            if len(seen) >= limit:
                stop.set()

        q = xs.Query()
        q.source(xs.io.kafka(broker, "numbers", np.float32, window=4), name="in").sink(take)
        run = q.run(stop=stop, positions=positions, tuple_burst=1)
        positions = run.positions()
        assert positions["in"]["sample"] == len(seen)
        if not run.stopped:
            break
    assert seen == numbers.tolist()
    assert positions["in"]["offset"] == len(sizes)


def test_kafka_resumes_from_a_checkpoint(broker: str, tmp_path: Path) -> None:
    numbers = np.arange(20_000, dtype=np.float32)
    produced(broker, "long", np.split(numbers, 200))
    stop = threading.Event()

    def query(watch: bool) -> xs.Query:
        q = xs.Query("kafka")
        windows = q.source(xs.io.kafka(broker, "long", np.float32, window=64))
        windows.rewindow(100).write(xs.io.csv(tmp_path / "out.csv"))
        return q

    options: dict[str, Any] = {"checkpoint": tmp_path / "points", "checkpoint_s": 1e-3}
    threading.Timer(0.2, stop.set).start()
    query(True).run(stop=stop, tuple_burst=1, **options)
    query(False).run(tuple_burst=1, resume=True, **options)
    assert np.loadtxt(tmp_path / "out.csv", skiprows=1).tolist() == numbers.tolist()


def test_kafka_positions_of_another_topic_or_of_messages_that_are_gone(broker: str) -> None:
    produced(broker, "few", [[1, 2]])
    position = {"sample": 1, "offset": 0, "used": 1, "topic": "few", "partition": 0}
    for changed, said in (
        ({"topic": "other"}, "is of another topic"),
        ({"offset": 1_000}, r"kafka .*: .*[Oo]ffset"),
    ):
        q = xs.Query()
        q.source(xs.io.kafka(broker, "few", np.float32), name="in").count()
        with pytest.raises(xs.InputError, match=said):
            q.run(positions={"in": {**position, **changed}})


@pytest.mark.parametrize("name", ["zmq", "confluent_kafka"])
def test_a_missing_package_is_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    extra = "zmq" if name == "zmq" else "kafka"
    with pytest.raises(xs.MissingPackageError, match=rf"pip install 'xstream\[{extra}\]'"):
        _ = xs.io.zmq("tcp://127.0.0.1:1") if extra == "zmq" else xs.io.kafka("a:1", "t")


def test_a_channel_says_that_it_has_no_position() -> None:
    q = xs.Query()
    q.source(xs.io.zmq(f"tcp://127.0.0.1:{free_port()}", bind=True), name="in").count()
    with pytest.raises(xs.GraphError, match="no position to begin at: what was received is gone"):
        q.run(positions={"in": {"sample": 3}})
