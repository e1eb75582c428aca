"""The driver sends rows at their times, and times answers by when their rows were due."""

from __future__ import annotations

import fcntl
import json
import resource
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from linearroad.driver.due_times import DueTimes
from linearroad.driver.job import drive
from linearroad.driver.results import DriveOptions, DriveResult
from linearroad.driver.sender import Progress
from linearroad.driver.traffic import copied, seconds
from linearroad.input import open_input
from linearroad.run.copies import Copy
from linearroad.run.job import RunOptions, run
from linearroad.tables.history import History
from linearroad.validation.answers import read_run
from linearroad.validation.job import validate
from linearroad.wire.format import empty_block

from tests.apps.command import call
from tests.linearroad.service.systems import everything
from tests.linearroad.service.test_serve import without_emit
from xstream.errors import InputError
from xstream.testing import ManualClock

ROOT = Path(__file__).resolve().parents[3]
REPORT = "0,{time},{vid},30,0,1,0,10,53000,-1,-1,-1,-1,-1,-1\n"
BALANCE = "2,{time},{vid},-1,-1,-1,-1,-1,-1,{qid},-1,-1,-1,-1,-1\n"

#: Types that no answer has, some of which begin like one.
TYPES_OF_NOTHING = (5, 44, 4_000, 123_456_789_012_345_678, -4, -123_456_789_012_345_678)

System = Callable[[socket.socket], None]


@contextmanager
def system(behave: System) -> Iterator[str]:
    """A system of one driver that behaves in a certain way, and its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def work() -> None:
            sock, _ = listener.accept()
            sock.settimeout(20.0)
            with sock:
                behave(sock)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join(20.0)


@pytest.fixture
def two_rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(REPORT.format(time=0, vid=7) + BALANCE.format(time=10, vid=7, qid=3))
    return path


def driven(
    source: Path, out: Path, behave: System, clock: ManualClock | None = None, **options: object
) -> DriveResult:
    how = DriveOptions(**{"speed": 1000.0, **options})  # type: ignore[arg-type]
    with system(behave) as address:
        return drive(source, address, out, how, clock=clock)


def test_rows_are_sent_when_they_are_due_and_answers_timed_by_that(
    two_rows: Path, tmp_path: Path
) -> None:
    clock, received = ManualClock(), list[tuple[float, bytes]]()

    def behave(sock: socket.socket) -> None:
        file = sock.makefile("rb")
        for _ in range(2):
            line = file.readline()
            received.append((clock(), line))
        sock.sendall(b"0,7,0,99.5,40,0\n2,10,0.000,10,3,55\n")

    result = driven(two_rows, tmp_path / "out", behave, clock, speed=2.0)
    assert received[0][1] == two_rows.read_bytes().splitlines(keepends=True)[0]
    assert received[1][0] == pytest.approx(5.0)  # second 10 at twice the speed
    # The first answer came ten seconds after its row was due, whenever it was read.
    assert (tmp_path / "out" / "output.csv").read_text() == (
        "0,7,0,10.000,40,0\n2,10,10.000,10,3,55\n"
    )
    assert result.response_s["toll notifications"]["worst"] == 10.0
    assert result.response_s["balances"]["worst"] == 0.0
    assert result.first_late == (
        "second 0: toll notifications took 10.000 stream seconds, and 5 are allowed"
    )
    assert (result.late, result.passed, result.ended) == (1, False, None)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["rows"], summary["reports"], summary["late"]) == (2, 1, 1)
    assert summary["stream_seconds"] == 10


def test_the_second_of_a_row_is_marked_if_asked_for(two_rows: Path, tmp_path: Path) -> None:
    told = list[bytes]()
    driven(two_rows, tmp_path / "out", lambda sock: told.append(everything(sock)), marks=True)
    lines = told[0].decode().splitlines()
    mark = ",".join(["-1"] * 13)
    assert lines[1::2] == [f"1,0,{mark}", f"1,10,{mark}"]


def test_malformed_answers_are_kept_and_counted(two_rows: Path, tmp_path: Path) -> None:
    def behave(sock: socket.socket) -> None:
        everything(sock)
        sock.sendall(b"hello\n0,7,0,0,40,0\n0,7,0,0,40\n9,1,1,1\n")
        sock.sendall(b"".join(b"%d,7,0,0,40,0\n" % kind for kind in TYPES_OF_NOTHING))

    result = driven(two_rows, tmp_path / "out", behave)
    malformed = 3 + len(TYPES_OF_NOTHING)
    assert (result.malformed_answers, result.answers["toll notifications"]) == (malformed, 1)
    rejects = (tmp_path / "out" / "rejects.csv").read_text().splitlines()
    assert rejects[0].endswith("not an answer,hello,answers")
    assert not result.passed


def test_answers_to_rows_that_were_not_sent_are_counted_and_not_timed(
    two_rows: Path, tmp_path: Path
) -> None:
    def behave(sock: socket.socket) -> None:
        everything(sock)
        sock.sendall(struct.pack("<15i", 0, 8, 0, 38, 0, 1, 9, 0, 1, 0, 2, 4, 0, 0, 0))

    result = driven(two_rows, tmp_path / "thesis", behave, wire="thesis")
    assert result.unknown_answers == 3
    assert result.warnings == ["3 answers belong to no row that was sent"]
    assert (result.late, result.response_s) == (0, {})

    def behave_flat(sock: socket.socket) -> None:
        everything(sock)
        sock.sendall(b"0,7,-1,0,40,0\n")

    result = driven(two_rows, tmp_path / "flat", behave_flat)
    assert result.unknown_answers == 1
    assert (result.late, result.response_s) == (0, {})


@pytest.mark.parametrize(
    ("wire", "said", "sentence"),
    [
        ("flat", b"error: too many cars\n", "ended the connection: too many cars"),
        ("arrow", b"error: too many cars\n", "ended the connection: too many cars"),
        ("thesis", b"error: too many cars\n", "ended the connection: too many cars"),
        ("flat", b"0,7,0,0,4", "ended within a line of 9 bytes"),
        ("thesis", b"\0" * 33, "ended within a tuple, 13 of 20 bytes"),
        ("arrow", b"\xff\xff\xff\xff\0\0\0\x40", "announced 1,073,741,824 bytes of metadata"),
        ("flat", b"", "sent no answer"),
    ],
)
def test_what_a_system_does_wrong_is_said_in_a_sentence(
    two_rows: Path, tmp_path: Path, wire: str, said: bytes, sentence: str
) -> None:
    def behave(sock: socket.socket) -> None:
        everything(sock)
        sock.sendall(said)

    result = driven(two_rows, tmp_path / "out", behave, wire=wire)
    assert result.ended is not None
    assert sentence in result.ended
    assert not result.passed


def many_rows(path: Path, rows: int = 400_000) -> Path:
    """More rows than the buffers of a connection hold, in ten seconds."""
    path.write_text("".join(REPORT.format(time=10 * i // rows, vid=i) for i in range(rows)))
    return path


def test_a_system_that_ends_early_ends_the_drive(tmp_path: Path) -> None:
    def behave(sock: socket.socket) -> None:
        sock.recv(10_000)

    result = driven(many_rows(tmp_path / "rows.csv"), tmp_path / "out", behave, speed=10.0)
    assert result.ended is not None
    assert not result.passed
    assert result.stream_seconds < 9


def waiting_bytes(sock: socket.socket) -> int:
    """How much the buffer of a socket holds."""
    return struct.unpack("i", fcntl.ioctl(sock, termios.FIONREAD, b"\0" * 4))[0]


@pytest.mark.parametrize("pause_s", [1.5, pytest.param(30.0, marks=pytest.mark.slow)])
def test_a_system_that_stops_reading_pushes_back_and_that_is_said(
    tmp_path: Path, pause_s: float
) -> None:
    def behave(sock: socket.socket) -> None:
        held = -1
        while held != (held := waiting_bytes(sock)) or not held:  # until the buffers are full
            time.sleep(0.5)
        time.sleep(pause_s)
        everything(sock)
        sock.sendall(b"0,7,0,0,40,0\n")

    rows = many_rows(tmp_path / "rows.csv", 800_000)
    result = driven(rows, tmp_path / "out", behave, speed=100.0)
    assert result.ended is None
    assert result.rows == 800_000
    assert result.blocked_s > pause_s - 0.5
    assert result.worst_lag_s > 100 * (pause_s - 0.5)
    assert result.fell_behind is not None
    blocked = Progress(worst_lag_s=260.0, worst_second=9, blocked_s=2.5, own_s=0.4)
    assert (blocked.sentence(100.0) or "").startswith(
        "the system fell behind and TCP pushed back: the rows of second 9"
    )


def test_a_system_that_never_reads_again_ends_the_drive(tmp_path: Path) -> None:
    over = threading.Event()
    rows = many_rows(tmp_path / "rows.csv", 800_000)
    behave = lambda sock: over.wait(20.0) and None  # noqa: E731
    how = DriveOptions(speed=100.0, stall_s=0.5)
    with system(behave) as address:
        result = drive(rows, address, tmp_path / "out", how)
        over.set()
    assert result.ended is not None
    assert "has not read anything for 0." in result.ended


def test_a_slow_driver_is_not_blamed_on_the_system() -> None:
    slow = Progress(worst_lag_s=5.0, worst_second=9, blocked_s=0.1, own_s=1.4)
    assert slow.sentence(1.0) == (
        "the driver itself was too slow: the rows of second 9 were sent 5.0 stream seconds late, "
        "and it took up to 1.40 s of its own for the rows of one second"
    )
    assert Progress(worst_lag_s=0.9).sentence(1.0) is None


def test_rows_of_several_files_come_by_second_with_copies(directory: Path) -> None:
    together = [row for s in seconds(open_input(directory), 2**31) for row in s.rows.T.tolist()]
    files = [
        [row for chunk in reader.chunks() for row in np.stack(chunk.columns).T.tolist()]
        for reader in open_input(directory)
    ]
    assert sorted(together) == sorted(row for file in files for row in file)
    assert [row[1] for row in together] == sorted(row[1] for row in together)
    report = [0, 5, 1, 9, 2, 1, 0, 3, 16000, -1, -1, -1, -1, -1, -1]
    balance = [2, 5, 1, -1, -1, -1, -1, -1, -1, 8, -1, -1, -1, -1, -1]
    spent = [3, 5, 1, -1, 2, -1, -1, -1, -1, 9, -1, -1, -1, -1, 4]
    rows = np.array([report, balance, spent], np.int32).T.copy()
    copies = [Copy(0, 0, 0), Copy(10, 100, 1000)]
    (block,) = copied(rows, copies)
    assert block[:, :3].tolist() == rows.tolist()
    vid, xway, qid = block[[2, 4, 9], 3:].tolist()
    assert (vid, xway, qid) == ([101, 101, 101], [12, -1, 12], [-1, 1008, 1009])


def test_answers_without_times_belong_to_the_latest_row_of_their_vehicle_or_request() -> None:
    due, rng, latest = DueTimes(), np.random.default_rng(1), dict[tuple[bool, int], int]()
    for second in range(40):
        rows = empty_block(500)
        rows[0] = rng.choice([0, 2, 3], 500)
        rows[1], rows[2], rows[9] = second, rng.integers(0, 9000, 500), rng.integers(0, 9000, 500)
        due.note(rows)
        for kind, vid, qid in zip(*rows[[0, 2, 9]].tolist(), strict=True):
            latest[kind == 0, vid if kind == 0 else qid] = second
    kinds = rng.integers(0, 5, 2000).astype(np.int8)
    who = rng.integers(0, 9000, 2000).astype(np.int32)
    found = [latest.get((k < 2, w), -1) for k, w in zip(kinds.tolist(), who.tolist(), strict=True)]
    # An accident may be detected up to 29 s after the report of who is warned.
    expected = [min(second + 29, 39) if kind == 1 and second >= 0 else second
                for kind, second in zip(kinds.tolist(), found, strict=True)]  # fmt: skip
    assert due.seconds(kinds, who).tolist() == expected
    assert any(0 <= second < 10 for second in found)


def test_tuples_of_the_thesis_are_written_by_arrival(two_rows: Path, tmp_path: Path) -> None:
    clock = ManualClock()

    def behave(sock: socket.socket) -> None:
        got = everything(sock)
        assert len(got) == 2 * 36
        sock.sendall(struct.pack("<10i", 0, 7, 12, 38, 0, 2, 3, 500, 0, 0))

    result = driven(two_rows, tmp_path / "out", behave, clock, wire="thesis", speed=1.0)
    lines = (tmp_path / "out" / "output.csv").read_text().splitlines()
    assert lines == ["10.000,0,7,12,38,0", "10.000,2,3,500,0,0"]
    assert result.response_s["toll notifications"]["worst"] == 10.0
    assert result.response_s["toll notifications"]["limit"] == 15


def test_bad_options_and_no_system_are_input_errors(
    two_rows: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(InputError, match=f"no connection to 127.0.0.1:{port}: Connection refused"):
        drive(two_rows, f"127.0.0.1:{port}", tmp_path / "out", DriveOptions())
    with pytest.raises(InputError, match="--speed must be from"):
        drive(two_rows, "127.0.0.1:1", tmp_path / "out", DriveOptions(speed=float("nan")))
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(InputError, match="has no rows"):
        drive(empty, f"127.0.0.1:{port}", tmp_path / "out", DriveOptions())
    with pytest.raises(InputError, match="--answers digest requires a generated directory"):
        drive(two_rows, f"127.0.0.1:{port}", tmp_path / "out", DriveOptions(answers="digest"))
    arguments = ("--input", two_rows, "--to", "nowhere", "--out", tmp_path / "out")
    assert call(monkeypatch, "linearroad", "drive", *arguments) == 2
    assert "--to must be HOST:PORT" in capsys.readouterr().err


@contextmanager
def example() -> Iterator[str]:
    """The example system as a process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, ROOT / "examples" / "linearroad_system.py", str(port)]
    with subprocess.Popen(command) as process:
        try:
            yield f"127.0.0.1:{port}"
            assert process.wait(20.0) == 0
        finally:
            process.kill()


def test_the_example_system_answers_as_a_run_does(directory: Path, tmp_path: Path) -> None:
    run(directory, tmp_path / "run", History(), RunOptions())
    with example() as address:
        how = DriveOptions(speed=20_000.0, wait_s=20.0)
        result = drive(directory, address, tmp_path / "out", how)
    assert result.ended is None
    assert without_emit(tmp_path / "out" / "output.csv") == without_emit(
        tmp_path / "run" / "output.csv"
    )
    assert any(line.startswith("1,") for line in without_emit(tmp_path / "out" / "output.csv"))


@pytest.mark.slow
@pytest.mark.spark
def test_the_example_system_passes_a_validated_drive(generated: Path, tmp_path: Path) -> None:
    with example() as address:
        how = DriveOptions(speed=40.0, wait_s=20.0, minutes=3)
        result = drive(generated, address, tmp_path / "out", how)
    assert result.ended is None
    verdict = validate(generated, tmp_path / "out", minutes=3).verdict
    wrong = {kind: count for figures in verdict.types for kind, count in figures.differences.items()
             if count and kind != "late"}  # fmt: skip
    assert not wrong
    assert verdict.types[0].right > 1000


@pytest.mark.parametrize("answers", [20_000, 400_000])
def test_a_full_disk_gets_one_sentence_and_leaves_whole_lines(
    two_rows: Path, tmp_path: Path, answers: int
) -> None:
    """Whether it is full while answers arrive or at the end: nothing looks like a result."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    def behave(sock: socket.socket) -> None:
        everything(sock)
        with suppress(OSError):  # the driver ends the connection
            sock.sendall(b"0,7,0,0,40,0\n" * answers)

    out = tmp_path / "out"
    with system(behave) as address:
        words = ("linearroad", "drive", "--input", two_rows, "--to", address, "--out", out)
        done = subprocess.run(
            [sys.executable, "-c", "import sys; from xstream.cli import main; sys.exit(main())",
             *map(str, words), "--speed", "1000"],
            capture_output=True, text=True, preexec_fn=limit, check=False,
        )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last == f"xstream: {out / 'output.csv'} cannot be written: File too large"
    text = (out / "output.csv").read_text()
    assert text.endswith("\n") or not text
    assert {line.count(",") for line in text.splitlines()} <= {5}
    assert not (out / "summary.json").exists()
    with pytest.raises(InputError, match="the run has not finished"):
        read_run(out)
