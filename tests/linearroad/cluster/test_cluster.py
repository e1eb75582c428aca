"""Linear Road on a standalone cluster whose machines are as far apart as this one allows.

A master and three workers, each with its own working directory, user and network namespace where
that works, do what one box does, while their executors are killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from linearroad import spark as sparks
from linearroad.generation.manifest import read_manifest
from linearroad.packing import pack

from tests.linearroad.cluster.answers import by_group
from tests.linearroad.cluster.standalone import Cluster, standalone

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]
SECRET = "not-for-logs-7f31"
EXPRESSWAYS, GROUP, MINUTES = 12, 2, int(os.environ.get("XSTREAM_CLUSTER_MINUTES", "20"))
GENERATE = (
    "--expressways", EXPRESSWAYS, "--minutes", MINUTES, "--group", GROUP, "--seed", 3, "--history",
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        sparks.require_spark()
    except ValueError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("cluster")
    for each in (folder, *folder.parents):  # pytest's folders are for its own user alone
        if each.stat().st_uid == os.geteuid() and each != Path("/"):
            each.chmod(each.stat().st_mode | 0o011)
    os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET
    with standalone(folder) as made:
        if os.geteuid() == 0:  # others may not run the interpreter of root
            made.archive = Path(os.environ.get("XSTREAM_PACKED") or folder / "environment")
            if not made.archive.exists():
                pack(made.archive)
        yield made
    del os.environ["AWS_SECRET_ACCESS_KEY"]


def kill_executor(cluster: Cluster, begun: Callable[[], Path | None], seconds: float = 900) -> None:
    """Kill an executor with SIGKILL once its work has begun: that of the user who wrote a file."""
    until = time.monotonic() + seconds
    while (written := begun()) is None:
        assert time.monotonic() < until, cluster.logs()[-3000:]
        time.sleep(0.01)
    with contextlib.suppress(OSError):
        owner = written.stat().st_uid
        for executor in cluster.executors():
            if executor.uids().real == owner:
                executor.kill()
                return
    cluster.executors()[0].kill()


def first(folder: Path, pattern: str) -> Callable[[], Path | None]:
    return lambda: next(iter(folder.glob(pattern)), None)


def finish(process: object, timeout: float = 1800) -> str:
    printed, errors = process.communicate(timeout=timeout)  # type: ignore[attr-defined]
    assert process.returncode == 0, f"{printed[-2000:]}\n{errors[-4000:]}"  # type: ignore[attr-defined]
    return str(printed)


@pytest.fixture(scope="module")
def road(cluster: Cluster) -> Path:
    """Generated on the cluster, while an executor was killed."""
    out = cluster.shared / "road"
    process = cluster.start("generate", "--out", out, *GENERATE, "--master", cluster.url)
    kill_executor(cluster, first(out, ".work/simulated-*.done"))
    finish(process)
    return out


@pytest.fixture(scope="module")
def alone(cluster: Cluster, road: Path) -> Path:
    """Answers of one engine on this machine."""
    out = cluster.folder / "alone"
    cluster.run("run", "--input", road, "--history", road, "--out", out)
    return out


def test_generated_files_are_those_of_one_box(cluster: Cluster, road: Path) -> None:
    out = cluster.folder / "same"
    cluster.run("generate", "--out", out, *GENERATE, "--master", "local[2]")
    here, there = read_manifest(out), read_manifest(road)
    for kind in ("simulated", "traffic", "history", "store", "totals"):
        assert there[kind] == here[kind], kind
    assert not (road / ".work").exists()


def test_answers_are_those_of_one_box_and_a_lost_task_is_resumed(
    cluster: Cluster, road: Path, alone: Path
) -> None:
    out = cluster.shared / "answers"
    process = cluster.start(
        "run", "--input", road, "--history", road, "--out", out, "--checkpoint-s", 0.05,
        "--master", cluster.url,
    )  # fmt: skip
    kill_executor(cluster, first(out, ".work/group-*/*/point-*.json"))
    finish(process)
    expected = by_group(road, alone / "output.csv", GROUP)
    found = [path.read_bytes() for path in sorted((out / "groups").glob("*/output.csv"))]
    assert found == expected
    told = json.loads((out / "summary.json").read_text())
    assert told["groups_resumed"] >= 1
    assert told["answers"] == json.loads((alone / "summary.json").read_text())["answers"]
    assert not (out / ".work").exists()


def test_the_verdict_is_that_of_one_box(cluster: Cluster, road: Path, alone: Path) -> None:
    out = cluster.shared / "answers"
    process = cluster.start(
        "validate", "--input", road, "--history", road, "--output", out, "--master", cluster.url,
        "--json",
    )  # fmt: skip
    kill_executor(cluster, first(out, ".validation-*/followed/*"))
    there = json.loads(finish(process))
    here = json.loads(
        cluster.run("validate", "--input", road, "--history", road, "--output", alone, "--json")
    )
    for each in (here, there):
        each.pop("seconds")
    assert there == here
    assert there["right"]
    assert not list(out.glob(".validation-*"))


def listeners(cluster: Cluster, more: list[int]) -> set[str]:
    """The addresses that processes of the cluster listen on."""
    found = set()
    for number in [*(worker.pid for worker in cluster.workers), cluster.master, *more]:
        process = psutil.Process(number)
        for each in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                found |= {
                    connection.laddr.ip.removeprefix("::ffff:")
                    for connection in each.net_connections("tcp")
                    if connection.status == psutil.CONN_LISTEN
                }
    return found


def test_nothing_is_left_after_interrupts_and_kills_and_nothing_listens_elsewhere(
    cluster: Cluster, road: Path
) -> None:
    out = cluster.shared / "interrupted"
    command = (
        "run", "--input", road, "--out", out, "--checkpoint-s", 0.1, "--master", cluster.url,
    )  # fmt: skip
    heard: set[str] = set()
    for number in (signal.SIGINT, signal.SIGKILL):
        process = cluster.start(*command)
        begun = first(out, ".work/group-*/*/point-*.json")
        while begun() is None and process.poll() is None:
            heard |= listeners(cluster, [process.pid])
            time.sleep(0.2)
        os.killpg(process.pid, number)
        process.communicate(timeout=120)
        until = time.monotonic() + 120
        while cluster.executors() and time.monotonic() < until:
            time.sleep(0.2)
        assert not cluster.executors()
        assert not (out / "summary.json").exists()
        if number == signal.SIGINT:
            assert cluster.leftovers() == []
    cluster.run(*command, "--resume")
    assert (out / "summary.json").exists()
    assert not (out / ".work").exists()
    assert cluster.leftovers() == []
    network = "127." if not cluster.prefix else "10.99.0."
    assert heard
    assert all(ip.startswith(("127.", network)) for ip in heard), heard
    assert SECRET not in cluster.logs()
