"""A standalone Spark cluster on this machine: a master and workers, as far apart as it allows.

As root with iproute2, the master and the driver share a network namespace, and each worker has its
own; they are connected by a bridge, and nothing listens outside of them. As root, each worker also
has its own user, in a group to which the shared folder belongs. Otherwise everything is on
loopback.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path

import psutil

GROUP = 12000
#: Hadoop wants users that have a name; these are on every Debian.
USERS = ("daemon", "games", "nobody")
PORT, WEB_PORT = 7077, 8080
DEPLOY = "org.apache.spark.deploy"


@dataclass
class Cluster:
    """A running cluster."""

    url: str
    folder: Path
    shared: Path
    #: What a command must be started with to be in the network of the master.
    prefix: list[str]
    #: Of an executor.
    memory: str
    #: The archive that executors run, if they cannot run the interpreter of the driver.
    archive: Path | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    #: The process identifier of the master.
    master: int = 0

    @property
    def environment(self) -> dict[str, str]:
        """For commands on the driver; its temporary folders can be inspected."""
        temporary = self.folder / "driver"
        return {
            **os.environ, "TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(temporary),
            "SPARK_CONF_DIR": str(self.folder / "conf"), "PYTHONPATH": "",
            **({"XSTREAM_ENVIRONMENT": str(self.archive)} if self.archive else {}),
        }  # fmt: skip

    def configure(self, ui: bool) -> None:
        """Write the settings of the cluster's users; Spark's pages only if they are wanted."""
        shown = "spark.ui.enabled true\n" if ui else ""
        settings = f"spark.executor.memory {self.memory}\nspark.driver.memory {self.memory}\n"
        (self.folder / "conf" / "spark-defaults.conf").write_text(settings + shown)

    def command(self, *arguments: object) -> list[str]:
        """An xstream command on the driver."""
        xstream = Path(sys.executable).with_name("xstream")
        return [*self.prefix, str(xstream), "linearroad", *map(str, arguments)]

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start a command, with a working directory that is nobody else's."""
        return subprocess.Popen(
            self.command(*arguments), env=self.environment, cwd=self.folder / "driver", text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, umask=0o002, start_new_session=True,
            # A shell that starts tests in the background leaves SIGINT ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip

    def run(self, *arguments: object, timeout: float = 1200) -> str:
        """Run a command to its end; returns what it printed."""
        with self.start(*arguments) as process:
            printed, errors = process.communicate(timeout=timeout)
        assert process.returncode == 0, f"{printed[-2000:]}\n{errors[-4000:]}"
        return printed

    def executors(self) -> list[psutil.Process]:
        """The Java processes that run tasks."""
        found = []
        for worker in self.workers:
            for child in psutil.Process(worker.pid).children(recursive=True):
                try:
                    if "CoarseGrainedExecutorBackend" in " ".join(child.cmdline()):
                        found.append(child)
                except psutil.Error:
                    continue
        return found

    def logs(self) -> str:
        """Everything that the cluster has logged."""
        files = [*self.folder.glob("*.log"), *self.folder.glob("worker-*/app-*/*/std*")]
        return "\n".join(path.read_text(errors="replace") for path in files)

    def leftovers(self) -> list[Path]:
        """Files in temporary folders: those of the driver, and of tasks on workers."""
        found = list((self.folder / "driver").rglob("*"))
        for worker in self.folder.glob("worker-*"):
            found += [path for path in (worker / "tmp").rglob("*") if path.is_file()]
        return [path for path in found if "hsperfdata" not in str(path)]


def has_namespaces() -> bool:
    """Whether network namespaces can be made here."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("setpriv"):
        return False
    name = f"xsprobe{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if made.returncode:
        return False
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return True


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def network(workers: int) -> Iterator[list[tuple[str, list[str]]]]:
    """The address of the master and of each worker, and what starts a program there."""
    if not has_namespaces():
        yield [("127.0.0.1", [])] * (workers + 1)
        return
    hub = f"xs{os.getpid()}-0"
    names = [f"xs{os.getpid()}-{number}" for number in range(workers + 1)]
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", hub, "link", "add", "br0", "type", "bridge")
        ip("-n", hub, "addr", "add", "10.99.0.1/24", "dev", "br0")
        ip("-n", hub, "link", "set", "br0", "up")
        for number, name in enumerate(names[1:], 1):
            ip("-n", hub, "link", "add", f"v{number}", "type", "veth", "peer", "name", "eth0",
               "netns", name)  # fmt: skip
            ip("-n", hub, "link", "set", f"v{number}", "master", "br0", "up")
            ip("-n", name, "addr", "add", f"10.99.0.{10 + number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        addresses = ["10.99.0.1", *(f"10.99.0.{10 + number}" for number in range(1, workers + 1))]
        yield [
            (address, ["ip", "netns", "exec", name])
            for address, name in zip(addresses, names, strict=True)
        ]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def spark_home() -> Path:
    """The installed pyspark, which has Spark's programs in it."""
    found = util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


@contextmanager
def daemon(log: Path, command: list[str], address: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's programs, until the block ends; its working directory is that of the log."""
    home = log.parent
    environment = {
        **os.environ, "SPARK_LOCAL_IP": address, "SPARK_HOME": str(spark_home()), "PYTHONPATH": "",
        "SPARK_SCALA_VERSION": "2.13",
        "XSTREAM_CACHE_DIR": str(home / "cache"), "HOME": str(home), "TMPDIR": str(home / "tmp"),
        "SPARK_LOCAL_DIRS": str(home / "tmp"),
    }  # fmt: skip
    environment.pop("XDG_CACHE_HOME", None)
    with log.open("wb") as told:
        process = subprocess.Popen(
            command, stdout=told, stderr=subprocess.STDOUT, env=environment, cwd=home, umask=0o002,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        for child in [*psutil.Process(process.pid).children(recursive=True)]:
            child.kill()
        process.kill()
        process.wait(60)


def java(heap: str, program: str, *arguments: str) -> list[str]:
    return ["java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-cp", f"{spark_home()}/jars/*",
            f"{DEPLOY}.{program}", *arguments]  # fmt: skip


def wait_until(log: Path, words: str, times: int = 1) -> None:
    for _ in range(1200):
        if log.read_text(errors="replace").count(words) >= times:
            return
        time.sleep(0.1)
    raise AssertionError(log.read_text(errors="replace")[-2000:])


def make_worker_folder(folder: Path, user: int | None) -> None:
    for each in (folder, folder / "tmp", folder / "cache"):
        each.mkdir(mode=0o700)
        if user is not None:
            os.chown(each, user, GROUP)


@contextmanager
def standalone(
    folder: Path, workers: int = 3, cores: int = 1, memory: str = "1g"
) -> Iterator[Cluster]:
    """A master and workers below a folder, with an executor of this much memory each."""
    root = os.geteuid() == 0
    shared = folder / "shared"
    for each in (shared, folder / "driver", folder / "conf"):
        each.mkdir(parents=True)
    folder.chmod(0o755)
    if root:
        os.chown(shared, 0, GROUP)
    shared.chmod(0o2775)
    with ExitStack() as stack:
        (address, prefix), *places = stack.enter_context(network(workers))
        port, web = (PORT, WEB_PORT) if prefix else (free_port(), free_port())
        log = folder / "master.log"
        where = ("--host", address, "--port", str(port), "--webui-port", str(web))
        command = [*prefix, *java("512m", "master.Master", *where)]
        master = stack.enter_context(daemon(log, command, address))
        wait_until(log, "I have been elected leader")
        cluster = Cluster(f"spark://{address}:{port}", folder, shared, prefix, memory)
        cluster.configure(ui=False)
        cluster.master = master.pid
        for number, (own, prefix) in enumerate(places):
            user = pwd.getpwnam(USERS[number % len(USERS)]).pw_uid if root else None
            home = folder / f"worker-{number}"
            make_worker_folder(home, user)
            identity = (
                ["setpriv", f"--reuid={user}", f"--regid={GROUP}", "--clear-groups"] if root else []
            )
            ports = ("--webui-port", str(8081 if prefix else free_port()))
            program = java(
                "256m", "worker.Worker", "--host", own, *ports, "--cores", str(cores), "--memory",
                memory, "--work-dir", str(home), cluster.url,
            )  # fmt: skip
            started = daemon(home / "worker.log", [*prefix, *identity, *program], own)
            cluster.workers.append(stack.enter_context(started))
        wait_until(log, "Registering worker", workers)
        yield cluster
