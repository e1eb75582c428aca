"""The same command on a standalone cluster of two workers, on this machine's loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from linearroad import spark as sparks

from tests.linearroad.validation.runs import expected_answers, line_of, write_case, write_run
from tests.reference.linearroad_strategies import scenario

pytestmark = [pytest.mark.spark, pytest.mark.slow]
XSTREAM = Path(sys.executable).with_name("xstream")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(folder: Path, name: str, *arguments: str) -> Iterator[Path]:
    """Run one of Spark's programs until the block ends; yields the path of its log."""
    home = Path(sys.executable).parents[1].glob("lib/python*/site-packages/pyspark")
    command = [str(next(home) / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    log = folder / f"{name}-{len(list(folder.glob('*.log')))}.log"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder),
                   "SPARK_NO_DAEMONIZE": "1"}  # fmt: skip
    with log.open("wb") as told:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", *arguments],
            stdout=told, stderr=subprocess.STDOUT, env=environment,
        )  # fmt: skip
    try:
        yield log
    finally:
        process.terminate()
        process.wait(60)


def wait_until(log: Path, words: str, times: int = 1) -> None:
    for _ in range(1200):
        if log.read_text(errors="replace").count(words) >= times:
            return
        time.sleep(0.1)
    raise AssertionError(log.read_text(errors="replace")[-2000:])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    try:
        sparks.require_spark()
    except ValueError as error:
        pytest.skip(str(error))
    folder = tmp_path / "cluster"
    folder.mkdir()
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        ports = ("--port", str(port), "--webui-port", str(free_port()))
        master = stack.enter_context(started(folder, "master.Master", *ports))
        wait_until(master, "I have been elected leader")
        for _ in range(2):
            worker = ("-c", "1", "-m", "3g", "--webui-port", str(free_port()), url)
            stack.enter_context(started(folder, "worker.Worker", *worker))
        wait_until(master, "Registering worker", 2)
        yield url


@pytest.mark.timeout(900)
def test_two_workers_come_to_the_same_verdict(cluster: str, tmp_path: Path) -> None:
    case = scenario(3)
    files = write_case(tmp_path / "case", case)
    answers = expected_answers(case)
    write_run(tmp_path / "run", [line_of(answer) for answer in answers])
    done = subprocess.run(
        [str(XSTREAM), "linearroad", "validate", "--input", str(files.input), "--output",
         str(tmp_path / "run"), "--tolls", str(files.history.tolls), "--segment-history",
         str(files.history.segments), "--master", cluster, "--json"],
        capture_output=True, text=True, timeout=800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert sum(each["right"] for each in told["types"].values()) == len(answers)
    # Both have worked: each got an executor of this application.
    apps = list((tmp_path / "cluster").glob("app-*/*"))
    assert len(apps) == 2
