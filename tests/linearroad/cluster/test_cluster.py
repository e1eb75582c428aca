"""Linear Road on a standalone cluster whose machines are as far apart as this one allows.

A master and three workers, each with its own working directory, user and network namespace where
that works, do what one box does, while their executors are killed.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from linearroad import spark as sparks
from linearroad.archive import pack
from linearroad.generation.manifest import read_manifest

from tests.linearroad.cluster.answers import by_group
from tests.linearroad.cluster.standalone import Cluster, standalone

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]
#: What a group of `run` has saved, in a folder of the attempt.
POINTS = ".work/group-*/*/point-*.json"
#: The state of a socket in `/proc/net/tcp`.
LISTENING = "0A"
SECRET = "not-for-logs-7f31"
#: Of Spark's pages; the next ones if it is taken.
UI_PORT = 4040
EXPRESSWAYS, GROUP, MINUTES = 12, 2, int(os.environ.get("XSTREAM_CLUSTER_MINUTES", "20"))
GENERATE = (
    "--expressways", EXPRESSWAYS, "--minutes", MINUTES, "--group", GROUP, "--seed", 3, "--history",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder for all users. Pytest's own ones are for one user, also once another run begins."""
    with tempfile.TemporaryDirectory(prefix="xstream-cluster-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    try:
        sparks.require_spark()
    except ValueError as error:
        pytest.skip(str(error))
    os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET
    with standalone(folder) as made:
        if os.geteuid() == 0:  # others may not run the interpreter of root
            made.archive = Path(os.environ.get("XSTREAM_PACKED") or folder / "environment")
            if not made.archive.exists():
                pack(made.archive)
        yield made
    del os.environ["AWS_SECRET_ACCESS_KEY"]


def kill_executor(
    cluster: Cluster, process: subprocess.Popen[str], begun: Callable[[], Path | None]
) -> None:
    """Kill an executor with SIGKILL once its work has begun: that of the user who wrote a file."""
    while (written := begun()) is None:
        if process.poll() is not None:
            finish(process)
            pytest.fail("it ended before an executor could be killed")
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


def finish(process: subprocess.Popen[str], timeout: float = 1800) -> str:
    printed, errors = process.communicate(timeout=timeout)
    assert process.returncode == 0, f"{printed[-2000:]}\n{errors[-4000:]}"
    return printed


@pytest.fixture(scope="module")
def road(cluster: Cluster) -> Path:
    """Generated on the cluster, while an executor was killed."""
    out = cluster.shared / "road"
    process = cluster.start("generate", "--out", out, *GENERATE, "--master", cluster.url)
    kill_executor(cluster, process, first(out, ".work/simulated-*.done"))
    finish(process)
    return out


@pytest.fixture(scope="module")
def alone(cluster: Cluster, road: Path) -> Path:
    """Answers of one engine on this machine."""
    out = cluster.folder / "alone"
    cluster.run("run", "--input", road, "--history", road, "--out", out)
    return out


@pytest.fixture(scope="module")
def answers(cluster: Cluster, road: Path) -> Path:
    """Answers of the cluster, of which an executor was killed."""
    out = cluster.shared / "answers"
    process = cluster.start(
        "run", "--input", road, "--history", road, "--out", out, "--checkpoint-s", 0.05,
        "--master", cluster.url,
    )  # fmt: skip
    kill_executor(cluster, process, first(out, POINTS))
    finish(process)
    return out


def test_generated_files_are_those_of_one_box(cluster: Cluster, road: Path) -> None:
    out = cluster.folder / "same"
    cluster.run("generate", "--out", out, *GENERATE, "--master", "local[2]")
    here, there = read_manifest(out), read_manifest(road)
    for kind in ("simulated", "traffic", "history", "store", "totals"):
        assert there[kind] == here[kind], kind
    assert not (road / ".work").exists()


def test_answers_are_those_of_one_box_and_a_lost_task_is_resumed(
    road: Path, answers: Path, alone: Path
) -> None:
    expected = by_group(road, alone / "output.csv", GROUP)
    found = [path.read_bytes() for path in sorted((answers / "groups").glob("*/output.csv"))]
    assert found == expected
    told = json.loads((answers / "summary.json").read_text())
    assert told["groups_resumed"] >= 1
    assert told["answers"] == json.loads((alone / "summary.json").read_text())["answers"]
    assert not (answers / ".work").exists()


def test_the_verdict_is_that_of_one_box(
    cluster: Cluster, road: Path, answers: Path, alone: Path
) -> None:
    process = cluster.start(
        "validate", "--input", road, "--history", road, "--output", answers,
        "--master", cluster.url, "--json",
    )  # fmt: skip
    kill_executor(cluster, process, first(answers, ".validation-*/followed/*"))
    there = json.loads(finish(process))
    here = json.loads(
        cluster.run("validate", "--input", road, "--history", road, "--output", alone, "--json")
    )
    for each in (here, there):
        each.pop("seconds")
    assert there == here
    assert there["right"]
    assert not list(answers.glob(".validation-*"))


def listeners(cluster: Cluster, more: list[int]) -> set[tuple[str, int]]:
    """The addresses and ports that processes of the cluster listen on."""
    found = set()
    for number in [*(worker.pid for worker in cluster.workers), cluster.master, *more]:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(number)
            for each in [process, *process.children(recursive=True)]:
                with contextlib.suppress(OSError):
                    found |= listening(Path("/proc", str(each.pid)))
    return found


def listening(process: Path) -> set[tuple[str, int]]:
    """Where a process listens, in its own network namespace; psutil would look into this one."""
    own, found = set(), set()
    for file in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            own.add(os.readlink(file))
    for name in ("tcp", "tcp6"):
        for line in (process / "net" / name).read_text().splitlines()[1:]:
            _, place, _, state, *_, inode = line.split()[:10]
            if state == LISTENING and f"socket:[{inode}]" in own:
                ip, port = place.split(":")
                found.add((address_of(ip), int(port, 16)))
    return found


def address_of(text: str) -> str:
    """An address of `/proc/net/tcp`, whose words of four bytes are in the order of the machine."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    found = ipaddress.ip_address(b"".join(words))
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


def await_end_of_executors(cluster: Cluster) -> None:
    """Wait until the executors of a driver that has ended have ended too."""
    until = time.monotonic() + 120
    while cluster.executors() and time.monotonic() < until:
        time.sleep(0.2)
    assert not cluster.executors()


def test_nothing_is_left_after_interrupts_and_kills_and_nothing_listens_elsewhere(
    cluster: Cluster, road: Path
) -> None:
    out = cluster.shared / "interrupted"
    command = (
        "run", "--input", road, "--out", out, "--checkpoint-s", 0.1, "--master", cluster.url,
    )  # fmt: skip
    heard: dict[signal.Signals, set[tuple[str, int]]] = {}
    told = ""
    for number in (signal.SIGINT, signal.SIGKILL):
        cluster.configure(ui=number == signal.SIGKILL)
        earlier = set(out.glob(POINTS))  # of the run that was interrupted
        process = cluster.start(*command)
        heard[number] = set()
        while set(out.glob(POINTS)) <= earlier and process.poll() is None:
            heard[number] |= listeners(cluster, [process.pid])
            time.sleep(0.2)
        os.killpg(process.pid, number)
        told += "".join(process.communicate(timeout=120))
        await_end_of_executors(cluster)
        assert not (out / "summary.json").exists()
        if number == signal.SIGINT:
            assert cluster.leftovers() == []
    cluster.configure(ui=False)
    told += cluster.run(*command, "--resume")
    assert (out / "summary.json").exists()
    assert not (out / ".work").exists()
    assert cluster.leftovers() == []
    network = ("127.", "10.99.0.") if cluster.prefix else ("127.",)
    for number, places in heard.items():
        assert places
        assert all(ip.startswith(network) for ip, _ in places), places
        shown = {port for _, port in places} & set(range(UI_PORT, UI_PORT + 16))
        assert bool(shown) == (number == signal.SIGKILL)
    assert SECRET not in cluster.logs() + told


def test_executors_with_other_versions_are_refused_in_one_sentence(
    cluster: Cluster, road: Path
) -> None:
    other = cluster.shared / "other"
    python = cluster.archive / "bin" / "python" if cluster.archive else Path(sys.executable)
    for name, text in {
        "lib/numba-0.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: numba\nVersion: 0.1\n",
        "bin/python": f'#!/bin/sh\nPYTHONPATH={other}/lib:$PYTHONPATH exec {python} "$@"\n',
    }.items():
        path = other / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    archive, cluster.archive = cluster.archive, other
    try:
        out = cluster.shared / "refused"
        process = cluster.start("run", "--input", road, "--out", out, "--master", cluster.url)
        _, errors = process.communicate(timeout=600)
    finally:
        cluster.archive = archive
    assert process.returncode == 2, errors
    assert re.fullmatch(
        r"xstream: executors on \S+ have numba 0\.1, not \S+: ship the environment of the driver "
        r"\(docs/cluster\.md\), or install the same one",
        errors.strip(),
    )
    assert not (out / "summary.json").exists()
    await_end_of_executors(cluster)


def test_a_rating_of_the_cluster_is_confirmed_although_its_driver_was_killed(
    cluster: Cluster,
) -> None:
    base, out = cluster.shared / "base", cluster.shared / "rating"
    cluster.run(
        "generate", "--out", base, "--expressways", 2, "--minutes", 2, "--from-minute", 40,
        "--history", "--master", cluster.url,
    )  # fmt: skip
    command = (
        "rate", "--base", base, "--out", out, "--from", 6, "--to", 8, "--speed", 2,
        "--threads", 1, "--master", cluster.url,
    )  # fmt: skip
    process = cluster.start(*command)
    while not (out / "full-6").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=120)
    await_end_of_executors(cluster)
    rating = json.loads(cluster.run(*command, "--resume", "--json"))["rating"]
    assert (rating["expressways"], rating["confirmed"]) == (6, True), rating["sentence"]
    assert rating["validated"].startswith("right: all ")
    assert rating["runs_at_once"] == 3
    steps = [(step["kind"], step["expressways"], step["passed"]) for step in rating["steps"]]
    assert steps == [("probe", 6, True), ("full", 6, True)]
    for step in rating["steps"]:
        minutes = step["to_minute"] - step["from_minute"]
        assert step["digests"] == {"compared": 6 * 5 * minutes, "different": 0, "first": []}
    assert cluster.leftovers() == []
