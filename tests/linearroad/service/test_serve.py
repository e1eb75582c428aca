"""A service answers as `run` does on every wire, and survives every kind of driver."""

from __future__ import annotations

import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from linearroad.driver.job import drive
from linearroad.driver.results import DriveOptions
from linearroad.output.digests import read_digests
from linearroad.run.job import RunOptions, run
from linearroad.service import door
from linearroad.service.job import ServeOptions, serve
from linearroad.tables.history import History
from linearroad.wire.arrow import MOST_BODY, ROW_SCHEMA

from tests.linearroad.service.systems import everything, running
from tests.reference.linearroad_strategies import Scenario
from xstream.errors import InputError

FAST = 20_000.0
#: The rule set of each wire.
RULES = {"flat": "paper", "arrow": "paper", "thesis": "thesis"}


def without_emit(path: Path, rules: str = "paper") -> list[str]:
    """The answers of a file, sorted, without their times of arrival."""
    found = []
    for line in path.read_text().splitlines():
        fields = line.split(",")
        del fields[0 if rules == "thesis" else 3 if fields[0] == "0" else 2]
        found.append(",".join(fields))
    return sorted(found)


@pytest.fixture(scope="module")
def expected(
    directory: Path, history: History, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    found = {}
    for rules in ("paper", "brandeis", "walmart", "thesis"):
        out = tmp_path_factory.mktemp(rules)
        run(directory, out, history, RunOptions(rules))
        found[rules] = without_emit(out / "output.csv", rules)
    return found


@pytest.mark.parametrize(
    ("wire", "rules", "marks", "threads"),
    [
        ("flat", "paper", None, 1),
        ("flat", "paper", True, 1),
        ("arrow", "paper", None, 1),
        ("arrow", "paper", False, 2),
        pytest.param("arrow", "brandeis", None, 1, marks=pytest.mark.slow),
        pytest.param("flat", "walmart", None, 1, marks=pytest.mark.slow),
        ("thesis", "thesis", None, 1),
        pytest.param("thesis", "thesis", True, 1, marks=pytest.mark.slow),
    ],
)
def test_answers_over_the_network_are_those_of_a_run(
    directory: Path, history: History, expected: dict[str, list[str]], tmp_path: Path,
    wire: str, rules: str, marks: bool | None, threads: int,
) -> None:  # fmt: skip
    options = ServeOptions(wire=wire, rules=rules, threads=threads)
    with running(options, history) as service:
        for place in ("first", "again"):  # the next driver starts from nothing
            how = DriveOptions(wire=wire, speed=FAST, marks=marks)
            result = drive(directory, service.address, tmp_path / place, how)
            assert result.ended is None
            assert without_emit(tmp_path / place / "output.csv", rules) == expected[rules]
            assert expected[rules]
    assert [served.error for served in service.served] == [None, None]


@pytest.mark.parametrize("wire", ["flat", "arrow"])
def test_digests_of_copies_are_those_of_a_run(
    directory: Path, history: History, tmp_path: Path, wire: str
) -> None:
    out, copies, base = tmp_path / "run", 3, 2
    first = run(directory, out, history, RunOptions(answers="digest"))
    assert first.digests is not None
    with running(ServeOptions(wire=wire)) as service:  # history-free: compared below
        how = DriveOptions(wire, FAST, expressways=copies * base, answers="digest")
        result = drive(directory, service.address, tmp_path / "drive", how)
    plain = run(directory, tmp_path / "plain", History(), RunOptions(answers="digest"))
    assert plain.digests is not None
    assert result.copies_differ == 0
    minutes = plain.digests.shape[1]
    found = read_digests(tmp_path / "drive" / "digests.parquet", copies, minutes)
    together = plain.digests.sum(axis=0, dtype="uint64")
    for copy in range(copies):
        assert (found[copy] == together).all()


def rows(case: Scenario) -> bytes:
    return case.text.encode()


def send(service: Any, data: bytes, end: bool = True) -> bytes:
    """What the service says to a driver that sends these bytes."""
    with service.connect() as sock:
        sock.sendall(data)
        if end:
            sock.shutdown(socket.SHUT_WR)
        return everything(sock)


def stream(schema: Any = ROW_SCHEMA, many: int = 2, **options: Any) -> bytes:
    """An Arrow stream of rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        columns = [pa.array([0] * many, field.type) for field in schema]
        writer.write_batch(pa.record_batch(columns, schema=schema))
    return bytes(sink.getvalue())


def announced(body: int) -> bytes:
    """A stream whose first batch announces a body of so many bytes."""
    data = bytearray(stream())
    batch = pa.ipc.read_message(pa.py_buffer(bytes(data)))  # the schema
    begin = len(batch.serialize())
    length = struct.unpack_from("<i", data, begin + 4)[0]
    real = 8 * 15
    place = bytes(data[begin : begin + 8 + length]).index(struct.pack("<q", real))
    struct.pack_into("<q", data, begin + place, body)
    return bytes(data)


def wrong_columns() -> bytes:
    return stream(pa.schema([("type", pa.int32()), ("time", pa.int32())]))


def with_nulls() -> bytes:
    nullable = pa.schema([pa.field(field.name, pa.int32()) for field in ROW_SCHEMA])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, nullable) as writer:
        columns = [pa.array([0, None], pa.int32()) for _ in nullable]
        writer.write_batch(pa.record_batch(columns, schema=nullable))
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not an Arrow IPC stream"),
        (struct.pack("<II", 0xFFFFFFFF, 2**30), "announced 1,073,741,824 bytes of metadata"),
        (struct.pack("<II", 0xFFFFFFFF, 24) + bytes(24), "invalid Arrow frame"),
        (struct.pack("<II", 0xFFFFFFFF, 24) + b"\xff" * 24, "invalid Arrow frame"),
        (announced(2**30), f"announced a frame of {2**30:,} bytes; at most {MOST_BODY:,}"),
        (announced(-1), "announced a frame of -1 bytes"),
        (announced(64), "invalid Arrow frame"),
        (wrong_columns(), "other columns than type int32, time int32"),
        (with_nulls(), "nulls"),
        (stream(compression="lz4"), "compressed batch"),
    ],
)
def test_a_malformed_stream_gets_a_sentence_and_the_service_goes_on(
    data: bytes, sentence: str, case: Scenario
) -> None:
    with running(ServeOptions(wire="arrow")) as service:
        told = send(service, data, end=False).decode("ascii", "replace")
        assert "error: " in told
        assert sentence in told.rpartition("error: ")[2]
        good = send(service, stream(many=4))
        assert b"error" not in good
    assert sentence in service.log[1]
    assert "ended early" in service.log[1]
    assert [served.error is None for served in service.served] == [False, True]


@pytest.mark.parametrize(
    ("wire", "data", "sentence"),
    [
        ("arrow", stream()[:-60], "ended within a frame"),
        ("arrow", stream()[:5], "ended within the length of a frame"),
        ("flat", b"0,0,1,30,0,0,0,10,53", "ended within a line of 20 bytes, row 1"),
        ("thesis", bytes(36 + 14), "ended within a tuple, 14 of 36 bytes"),
    ],
)
def test_half_a_frame_is_an_error(wire: str, data: bytes, sentence: str) -> None:
    whole = {
        "flat": b"0,0,1,30,0,0,0,10,53000,-1,-1,-1,-1,-1,-1\n",
        "arrow": stream(),
        "thesis": bytes(36),
    }
    with running(ServeOptions(wire=wire, rules=RULES[wire])) as service:
        send(service, data)
        while len(service.log) < 2:
            time.sleep(0.01)
        assert sentence in service.log[1]
        again = send(service, whole[wire])
        assert again
        assert b"error" not in again


def test_a_frame_that_is_never_completed_ends_after_a_while() -> None:
    with running(ServeOptions(wire="arrow", stall_s=0.3)) as service:
        told = send(service, stream()[:-40], end=False)
        assert b"error: " in told
        assert b"only a part of a frame" in told


def test_garbage_lines_are_rejected_and_counted(case: Scenario) -> None:
    long = b"7" * 200_000
    with running(ServeOptions()) as service:
        clean = send(service, rows(case))
        dirty = send(service, b"garbage\n\xff\xfe\n1,2\n" + long + b"\n" + rows(case))
        assert dirty == clean
        assert clean
    assert "rejected 1 field count" not in service.log[1]
    assert "3 field count (first row 1), 1 line too long (first row 4)" in service.log[2]


def test_tuples_of_garbage_are_rejected_and_counted() -> None:
    report = struct.pack("<9i", 0, 5, 7, 50, 0, 9, 0, 1, 0)
    wrong = [b"\xff" * 36, b"garbage!!" * 4, struct.pack("<9i", 0, 5, 8, 50, 0, 100, 0, 1, 0)]
    with running(ServeOptions(wire="thesis", rules="thesis")) as service:
        clean = send(service, report)
        assert clean == struct.pack("<5i", 0, 7, 0, -1, 0)
        assert send(service, b"".join([*wrong, report])) == clean
    assert "1 Mile (first row 3), 2 unknown type (first row 1)" in service.log[2]


def test_a_connection_that_is_cut_leaves_the_service_ready(case: Scenario) -> None:
    with running(ServeOptions()) as service:
        sock = service.connect()
        sock.sendall(rows(case)[:1000])
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()  # resets the connection
        while len(service.log) < 2:
            time.sleep(0.01)
        assert "disconnected" in service.log[1]
        assert send(service, rows(case))


def test_a_second_driver_is_refused_and_the_first_is_not_disturbed(case: Scenario) -> None:
    with running(ServeOptions()) as service, service.connect() as first:
        first.sendall(rows(case)[:1000])
        for _ in range(3):
            assert send(service, rows(case)).decode() == f"error: {door.REFUSED}\n"
        first.sendall(rows(case)[1000:])
        first.shutdown(socket.SHUT_WR)
        answers = everything(first)
        assert answers == send(service, rows(case))
    assert len(service.served) == 2


def stopped_reader(case: Scenario, stall_s: float, pause_s: float) -> tuple[bytes, list[str]]:
    """What a driver gets that sends much and reads nothing for a while, and the log."""
    lines = rows(case)
    last = int(lines.rsplit(b"\n", 2)[1].split(b",")[1])
    # Requests about nobody are answered at once: enough of them to fill all buffers.
    many = b"".join(b"2,%d,1,-1,-1,-1,-1,-1,-1,%d,-1,-1,-1,-1,-1\n" % (last + 1 + i // 20_000, i)
                    for i in range(1_200_000))  # fmt: skip
    with running(ServeOptions(stall_s=stall_s)) as service, service.connect() as sock:
        sock.settimeout(None)

        def work() -> None:
            try:
                sock.sendall(lines + many)
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        time.sleep(pause_s)
        try:
            told = everything(sock)
        except OSError:
            told = b""
        thread.join(10.0)
        while len(service.log) < 2:
            time.sleep(0.01)
    return told, service.log


def test_a_reader_that_stops_for_a_while_loses_nothing(case: Scenario) -> None:
    told, log = stopped_reader(case, stall_s=30.0, pause_s=1.5)
    assert told.count(b"\n2,") >= 1_200_000 - 1
    assert "ended early" not in log[1]


def test_a_reader_that_stops_for_too_long_is_dropped(case: Scenario) -> None:
    _, log = stopped_reader(case, stall_s=0.5, pause_s=4.0)
    assert "has not read anything for 0." in log[1]


@pytest.mark.slow
def test_a_reader_that_stops_for_half_a_minute_loses_nothing(case: Scenario) -> None:
    told, log = stopped_reader(case, stall_s=60.0, pause_s=30.0)
    assert told.count(b"\n2,") >= 1_200_000 - 1
    assert "ended early" not in log[1]


def test_a_place_that_is_taken_or_no_place_is_an_input_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port}: Address"):
            serve(ServeOptions(f"127.0.0.1:{port}"), History(), print)
    with pytest.raises(InputError, match="--listen must be HOST:PORT"):
        serve(ServeOptions("9000"), History(), print)
    with pytest.raises(InputError, match="--wire must be one of flat, thesis, arrow"):
        serve(ServeOptions(wire="carrier pigeon"), History(), print)


def test_room_for_many_expressways_changes_no_answer(
    directory: Path, history: History, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    with running(ServeOptions(expressways=4), history) as service:
        result = drive(directory, service.address, tmp_path / "out", DriveOptions(speed=FAST))
    assert result.ended is None
    assert without_emit(tmp_path / "out" / "output.csv") == expected["paper"]


def test_a_service_listens_on_an_address_of_ipv6(case: Scenario) -> None:
    if not socket.has_ipv6:
        pytest.skip("needs IPv6")
    with running(ServeOptions("[::1]:0")) as service:
        assert service.address.startswith("[::1]:")
        assert send(service, rows(case))
