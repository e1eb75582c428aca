"""The settings of a Spark session: those of the user, in spark-defaults.conf, come first."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from linearroad.storage import place, spark_uri
from xstream.errors import InputError

__all__ = [
    "ATTEMPTS", "ENVIRONMENT", "SessionOptions", "is_local", "loopback", "settings_of",
    "variables_set",
]  # fmt: skip

# An expressway is a task of minutes, so a task that fails is retried.
ATTEMPTS = 4
# Latency does not matter and there are few cores: use the cheapest garbage collector.
COLLECTOR = "-XX:+UseParallelGC"
#: Names what `xstream linearroad pack` wrote for the executors.
ENVIRONMENT = "XSTREAM_ENVIRONMENT"


@dataclass(frozen=True)
class SessionOptions:
    """What a command asks of its session."""

    master: str
    name: str = "linearroad"
    memory: str = "2g"
    cpus: int = 1

    @property
    def url(self) -> str:
        """The master, which retries failed tasks."""
        return with_attempts(self.master)

    @property
    def environment(self) -> Path | None:
        """The packed environment of the executors: an archive to ship, or a folder they see."""
        given = os.environ.get(ENVIRONMENT)
        if not given or is_local(self.master):
            return None
        packed = place(given)
        if not packed.exists():
            raise InputError(f"{packed} does not exist: create it with `xstream linearroad pack`")
        return packed

    @property
    def python(self) -> str:
        """The interpreter of the executors."""
        packed = self.environment
        if packed is None:
            return sys.executable
        return str(packed / "bin" / "python") if packed.is_dir() else "./environment/bin/python"

    def archives(self) -> dict[str, str]:
        """What Spark sends to the executors."""
        packed = self.environment
        if packed is None or packed.is_dir():
            return {}
        return {"spark.archives": f"{spark_uri(packed)}#environment"}

    def addresses(self) -> dict[str, str]:
        """The only address to listen on, if it is known."""
        address = "127.0.0.1" if loopback(self.url) else _address_towards(self.url)
        if address is None:
            return {}
        return {"spark.driver.host": address, "spark.driver.bindAddress": address}

    def defaults(self) -> dict[str, str]:
        """Settings that hold unless the user has chosen others."""
        local = is_local(self.master)
        return {
            "spark.app.name": self.name,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.python.worker.reuse": "true",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
            "spark.driver.memory": self.memory if local else "1g",
            "spark.executor.memory": self.memory,
            "spark.executor.extraJavaOptions": COLLECTOR,
            "spark.task.maxFailures": str(ATTEMPTS),
            "spark.task.cpus": str(self.cpus),
            # Hadoop has a umask of its own; what Spark writes may be for users of one group.
            "spark.hadoop.fs.permissions.umask-mode": f"{_umask():03o}",
        }


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def settings_of(options: SessionOptions, folder: Path) -> dict[str, str]:
    """The settings with which Java is started; its temporary files are in a folder."""
    chosen = _chosen_by_user()
    settings = {name: value for name, value in options.defaults().items() if name not in chosen}
    logs = Path(__file__).with_name("log4j2.properties")
    settings |= {
        "spark.master": options.url,
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile=file:{logs} -Djava.io.tmpdir={folder} {COLLECTOR}"
        ),
    }
    settings |= options.archives()
    if "spark.driver.bindAddress" not in chosen:
        settings |= options.addresses()
    return settings


def _chosen_by_user() -> set[str]:
    """The names in spark-defaults.conf."""
    folder = os.environ.get("SPARK_CONF_DIR")
    file = Path(folder, "spark-defaults.conf") if folder else None
    if file is None or not file.is_file():
        return set()
    lines = (line.strip() for line in file.read_text().splitlines())
    return {re.split(r"[\s=:]", line)[0] for line in lines if line and not line.startswith("#")}


def is_local(master: str) -> bool:
    """Whether tasks run on this machine alone, in Java's own process."""
    return master.startswith("local") and not master.startswith("local-cluster")


def loopback(master: str) -> bool:
    """Whether nothing has to be reachable from elsewhere."""
    return re.match(r"local|spark://(127\.|localhost)", master) is not None


def _address_towards(master: str) -> str | None:
    """The address of this machine that the master of a standalone cluster sees: the only one to
    listen on."""
    found = re.match(r"spark://([^:,]+):(\d+)", master)
    if found is None or os.environ.get("SPARK_LOCAL_IP"):
        return os.environ.get("SPARK_LOCAL_IP")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((found[1], int(found[2])))  # sends nothing
            return str(probe.getsockname()[0])
    except OSError as error:
        raise InputError(f"{master} cannot be reached: {error.strerror or error}") from error


def with_attempts(master: str) -> str:
    """A master that retries failed tasks; a local master ignores `spark.task.maxFailures`.

    >>> with_attempts("local"), with_attempts("local[2]"), with_attempts("spark://head:7077")
    ('local[1,4]', 'local[2,4]', 'spark://head:7077')
    """
    local = re.fullmatch(r"local(?:\[([^,\]]+)\])?", master)
    return f"local[{local.group(1) or 1},{ATTEMPTS}]" if local else master


@contextmanager
def variables_set(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables of programs that are started in the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
