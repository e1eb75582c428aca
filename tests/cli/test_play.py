"""`xstream play`: a file arrives as it is, paced; errors are one sentence."""

from __future__ import annotations

import re
import runpy
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.io.peers import free_port, receives, server, thread_of
from tests.io.test_udp import numbered, send, udp_port

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = np.sin(np.arange(4_000) / 9).astype(np.float32)


def command(*given: object) -> list[str]:
    return [sys.executable, "-m", "xstream", "play", *map(str, given)]


def play(*given: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*given), capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "tone.wav"
    q = xs.Query()
    q.source(xs.io.array(SAMPLES, rate_hz=8_000.0)).write(xs.io.wav(path, subtype="FLOAT"))
    q.run()
    return path


def test_a_file_is_sent_over_tcp_twice(recording: Path) -> None:
    got: list[bytes] = []
    with server(receives(got)) as address:
        done = play(recording, "--to", f"tcp://{address}", "--speed", 0, "--repeat", 2)
    assert done.returncode == 0, done.stderr
    assert b"".join(got) == SAMPLES.tobytes() * 2
    assert "sent 8,000 samples, 32,000 bytes" in done.stdout


def test_the_printed_source_receives_a_file_over_udp(recording: Path) -> None:
    port = udp_port()
    sending = subprocess.Popen(
        command(recording, "--to", f"udp://127.0.0.1:{port}", "--speed", 0.25),
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with sending:
        assert sending.stdout is not None
        line = sending.stdout.readline()
        source: Any = eval(re.sub("^receive with: ", "", line), {"xs": xs})
        q = xs.Query()
        out = q.source(source, name="in").collect()
        run = q.run()
        told = sending.stdout.read()
    received = np.concatenate(run[out])
    start = run[out][0].start  # what was sent before the source was there is gone
    assert np.array_equal(received, SAMPLES[start:])
    assert run[out][0].timebase.rate_hz == 8_000.0
    seconds = float(re.findall(r"in ([0-9.]+) s", told)[0])
    assert 1.9 <= seconds < 30.0  # half a second, four times as slow
    assert "ms late" in told


def test_rows_are_paced_by_a_column(tmp_path: Path) -> None:
    table = tmp_path / "events.csv"
    table.write_text("time,level\n0,0.5\n0.1,0.25\n0.3,2\n")
    got: list[bytes] = []
    with server(receives(got)) as address:
        done = play(table, "--to", f"tcp://{address}", "--by", "time")
    assert done.returncode == 0, done.stderr
    dtype = np.dtype([("time", "<f8"), ("level", "<f8")])
    assert np.frombuffer(b"".join(got), dtype).tolist() == [(0, 0.5), (0.1, 0.25), (0.3, 2)]
    assert 'layout="rows"' in done.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["missing.wav", "--to", "udp://127.0.0.1:9"], "does not exist"),
        (["FILE", "--to", "http://127.0.0.1:9"], "--to is udp://HOST:PORT or tcp://HOST:PORT"),
        (["FILE", "--to", "udp://127.0.0.1"], "an address is 'host:port'"),
        (["FILE", "--to", "udp://127.0.0.1:9", "--listen"], "options of tcp://"),
        (["FILE", "--to", "tcp://127.0.0.1:9", "--plain"], "option of udp://"),
        (["notes.txt", "--to", "udp://127.0.0.1:9"], "its suffix names no known format"),
    ],
)
def test_errors_are_one_sentence(given: list[str], said: str, recording: Path) -> None:
    done = play(*(str(recording) if each == "FILE" else each for each in given))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_refused_connection_is_one_sentence(recording: Path) -> None:
    done = play(recording, "--to", f"tcp://127.0.0.1:{free_port()}")
    assert done.returncode == 2
    assert "cannot be reached: Connection refused" in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_a_file_that_is_repeated_for_ever(recording: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(30)
        port = receiver.getsockname()[1]
        playing = subprocess.Popen(
            command(recording, "--to", f"udp://127.0.0.1:{port}", "--repeat", 0),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # A shell that starts tests in the background leaves SIGINT ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
        receiver.recv(65536)
        time.sleep(0.3)
        playing.send_signal(signal.SIGINT)
        out, err = playing.communicate(timeout=20)
    assert "Traceback" not in err
    assert ", stopped" in out


def test_the_example_prints_levels_of_samples_that_arrive() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "udp_level.py"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    levels = [float(line.split()[2]) for line in done.stdout.splitlines() if " s  " in line]
    assert len(levels) > 5
    assert levels == sorted(levels)
    assert "0 duplicates" in done.stdout
    assert "latency: median" in done.stdout


def test_the_example_goes_on_after_lost_datagrams(capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "udp_level.py"))
    samples = np.full(160, 0.5, np.float32)
    numbers = [n for n in range(60) if n != 3 and not 20 <= n < 45]
    sent = [numbered(n, 160 * n, samples) for n in numbers] + [numbered(60, 9600, samples[:0])]
    port = udp_port()
    with thread_of(lambda: send(port, sent)):
        example["levels"](port).run()
    shown = [line.split()[2:] for line in capsys.readouterr().out.splitlines()]
    assert shown[0] == ["0.500", 30 * "#"]  # of the samples that have arrived
    assert ["nan", "lost"] in shown
    assert shown[-1] == shown[0]
