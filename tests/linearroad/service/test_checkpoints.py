"""A drive goes on after the service was killed, stopped, or cut off, and gets the same answers."""

from __future__ import annotations

import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from linearroad.driver.job import drive
from linearroad.driver.results import DriveOptions, DriveResult
from linearroad.run.job import RunOptions, run
from linearroad.service.job import ServeOptions
from linearroad.service.recent import RecentAnswers
from linearroad.tables.history import History
from linearroad.wire.connection import address

from tests.linearroad.service.systems import everything, running
from tests.linearroad.service.test_serve import rows, send, without_emit
from tests.reference.linearroad_strategies import Scenario

SPEED = 2_000.0  # the stream takes about three seconds
COMMAND = [sys.executable, "-c", "import sys; from xstream.cli import main; sys.exit(main())"]


@contextmanager
def cutting(to: str, cuts: list[int]) -> Iterator[str]:
    """An address that passes bytes on; the first connections end after so many bytes of answers."""
    ending = threading.Event()

    def serve_all(listener: socket.socket) -> None:
        while not ending.is_set():
            with suppress(TimeoutError):
                near, _ = listener.accept()
                with near, socket.create_connection(address(to, "--to")) as far:
                    exchange(near, far, cuts.pop(0) if cuts else None, ending)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=serve_all, args=(listener,), daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        ending.set()
        thread.join()


def exchange(
    near: socket.socket, far: socket.socket, most: int | None, ending: threading.Event
) -> None:
    """Pass bytes in both directions until both end, or until `most` bytes came from `far`."""
    others, passed = {near: far, far: near}, 0
    open_ones = [near, far]
    while open_ones and not ending.is_set():
        for sock in select.select(open_ones, [], [], 0.1)[0]:
            data = sock.recv(1 << 16)
            passed += len(data) if sock is far else 0
            if most is not None and passed > most:
                for end in (near, far):  # both sides see a reset
                    reset = struct.pack("ii", 1, 0)
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                return
            if data:
                others[sock].sendall(data)
            else:
                others[sock].shutdown(socket.SHUT_WR)
                open_ones.remove(sock)


@pytest.mark.parametrize(
    ("wire", "rules"),
    [("flat", "paper"), ("arrow", "brandeis"), ("flat", "walmart"), ("thesis", "thesis")],
)
def test_a_drive_goes_on_after_its_connection_was_cut(
    directory: Path, history: History, tmp_path: Path, wire: str, rules: str
) -> None:
    run(directory, tmp_path / "run", history, RunOptions(rules))
    whole = without_emit(tmp_path / "run" / "output.csv", rules)
    options = ServeOptions(
        wire=wire, rules=rules, checkpoints=tmp_path / "points", checkpoint_s=0.05
    )
    with running(options, history) as service:
        how = DriveOptions(wire=wire, speed=SPEED, reconnect_s=20.0)
        with cutting(service.address, [3_000, 9_000]) as place:
            result = drive(directory, place, tmp_path / "out", how)
        assert result.ended is None
        assert result.reconnections == 2
        assert without_emit(tmp_path / "out" / "output.csv", rules) == whole
    errors = [served.error for served in service.served]
    assert [error is None for error in errors] == [False, False, True]
    # All rows were accepted once: what the last connection ended with counts those before.
    assert service.served[-1].rows == result.rows
    assert service.served[-1].answers == len(whole)


@contextmanager
def server(place: str, folder: Path, *options: object) -> Iterator[subprocess.Popen[str]]:
    """A service in a process of its own, which listens when the block begins."""
    command = [*COMMAND, "linearroad", "serve", "--listen", place, "--checkpoint-s", "0.1"]
    command += ["--checkpoints", str(folder), *map(str, options)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert "listening" in process.stderr.readline()
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_drive_goes_on_after_the_service_was_killed_or_stopped(
    directory: Path, tmp_path: Path, how: signal.Signals
) -> None:
    run(directory, tmp_path / "run", History(), RunOptions("thesis"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    out, options = tmp_path / "out", DriveOptions("thesis", speed=SPEED / 2, reconnect_s=100.0)
    found = list[DriveResult]()
    driver = threading.Thread(
        target=lambda: found.append(drive(directory, place, out, options)), daemon=True
    )
    thesis = ("--wire", "thesis", "--rules", "thesis")
    with server(place, tmp_path / "points", *thesis) as service:
        driver.start()
        while not (out / "timeline.csv").exists():
            time.sleep(0.01)
        time.sleep(1.0)  # some checkpoints
        service.send_signal(how)
        service.wait()
    with server(place, tmp_path / "points", *thesis, "--resume"):
        driver.join(100.0)
    (result,) = found
    assert (result.ended, result.reconnections) == (None, 1)
    whole = without_emit(tmp_path / "run" / "output.csv", "thesis")
    assert without_emit(out / "output.csv", "thesis") == whole


def test_another_driver_begins_anew_after_one_that_was_cut(case: Scenario, tmp_path: Path) -> None:
    options = ServeOptions(checkpoints=tmp_path / "points", checkpoint_s=0.02)
    with running(options) as service:
        whole = send(service, rows(case))
        with service.connect() as sock:
            sock.sendall(rows(case)[:3000])
            time.sleep(0.3)
        while len(service.log) < 3:
            time.sleep(0.01)
        assert send(service, rows(case)) == whole
        assert whole


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        (b"resume: 0\n", b"resume: 0 0\n"),
        (b"resume: 12\n", b"resume: 0 0\n"),
        (b"resume: x\n", b"did not send a line `resume: ANSWERS`"),
        (b"resume: 1 2\n", b"did not send a line `resume: ANSWERS`"),
        (b"resume: " + b"9" * 80, b"did not send a line `resume: ANSWERS`"),
    ],
)
def test_a_service_that_has_nothing_says_so(line: bytes, reply: bytes) -> None:
    with running(ServeOptions()) as service:
        assert reply in send(service, line)


@pytest.mark.parametrize("lacks", ["few", "many"])
def test_a_driver_that_lacks_answers_gets_those_that_are_kept(
    case: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    if lacks == "many":
        keep_one = partial(RecentAnswers, most_bytes=1)
        monkeypatch.setattr("linearroad.service.job.RecentAnswers", keep_one)
    options = ServeOptions(checkpoints=tmp_path / "points", checkpoint_s=0.02)
    with running(options) as service:
        with service.connect() as sock:
            sock.sendall(rows(case)[:-1])  # within a line
            time.sleep(0.5)
            sock.shutdown(socket.SHUT_WR)
            first = everything(sock)
        while len(service.log) < 2:
            time.sleep(0.01)
        said, _, again = send(service, b"resume: 0\n").partition(b"\n")
    assert first
    if lacks == "many":
        assert re.fullmatch(
            rb"error: .+ has 0 answers, and of the [\d,]+ before the checkpoint only those behind "
            rb"[\d,]+ can be sent again",
            said,
        )
    else:
        assert re.fullmatch(rb"resume: [1-9]\d* 0", said)
        assert again.startswith(first)  # and those of the last second


def test_a_driver_does_not_go_on_with_a_system_that_cannot(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("0,0,7,30,0,1,0,10,53000,-1,-1,-1,-1,-1,-1\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def behave() -> None:
            for reply in (b"", b"hello\n", b"resume: 5 0\n"):
                with listener.accept()[0] as sock:
                    sock.settimeout(20.0)
                    sock.recv(1000)
                    sock.sendall(reply or b"0,7,0,0")  # or half an answer

        thread = threading.Thread(target=behave, daemon=True)
        thread.start()
        options = DriveOptions(reconnect_s=3.0, speed=100.0)
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        result = drive(path, place, tmp_path / "out", options)
        thread.join(20.0)
    assert result.ended is not None
    assert "wants to go on behind row 5 and answer 0, and only 1 rows were sent" in result.ended
    assert result.reconnections == 0
