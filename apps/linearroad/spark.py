"""The only place where pyspark is imported.

A session runs on `local[*]` unless told otherwise, listens on loopback only there, shows no user
interface, and starts its Python workers with the interpreter that runs this.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from xstream.errors import InputError, XStreamError

__all__ = ["attempt", "java_version", "run_tasks", "session"]

Item = TypeVar("Item")
Result = TypeVar("Result")
OLDEST_JAVA = 17
LOCAL_MASTER = "local[*]"
# Nobody waits for an answer here, and there are few cores: the collector that costs least.
COLLECTOR = "-XX:+UseParallelGC"


def java_command() -> str | None:
    """The java that Spark would start: JAVA_HOME's, or the first on the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        candidate = Path(home, "bin", "java")
        return str(candidate) if candidate.exists() else None
    return shutil.which("java")


def java_version(command: str) -> int | None:
    """The major version of a java, or None if it does not say."""
    try:
        output = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=60, check=False
        ).stderr
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(found.group(1)) if found else None


def require_java() -> None:
    """One sentence if there is no Java that Spark can use."""
    command = java_command()
    version = java_version(command) if command else None
    if version is not None and version >= OLDEST_JAVA:
        return
    found = f"found Java {version}" if version is not None else "found none"
    raise InputError(
        f"Spark needs Java {OLDEST_JAVA} or newer and {found}: install openjdk-17-jre-headless "
        "(Debian), java-21-openjdk-headless (Fedora) or openjdk@17 (macOS, Homebrew), "
        "or set JAVA_HOME"
    )


@contextmanager
def session(
    master: str | None = None, name: str = "linearroad", memory: str = "2g"
) -> Iterator[Any]:
    """A Spark session; an active one of this process is used and left alone.

    `memory` is what Java may use: here if the session is local, else in each executor.
    """
    require_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    local = (master or LOCAL_MASTER).startswith("local")
    loopback = local or re.match(r"spark://(127\.|localhost)", master or "") is not None
    if loopback:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    existing = SparkSession.getActiveSession()
    if existing is not None:
        yield existing
        return
    builder = (
        SparkSession.builder.master(master or LOCAL_MASTER)
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.worker.reuse", "true")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200000")
        .config("spark.driver.memory", memory if local else "1g")
        .config("spark.executor.memory", memory)
        .config(
            "spark.driver.extraJavaOptions",
            f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')} "
            f"{COLLECTOR}",
        )
        .config("spark.executor.extraJavaOptions", COLLECTOR)
        # An expressway is a task of minutes: one that fails is tried again, not given up at once.
        .config("spark.task.maxFailures", "4")
    )
    if loopback:
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.driver.bindAddress", "127.0.0.1"
        )
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise InputError(
            f"no Spark session on {master or LOCAL_MASTER}: {_reason(error)}"
        ) from error
    spark.sparkContext.setLogLevel("ERROR")
    logging.getLogger("py4j").setLevel(logging.ERROR)
    try:
        yield spark
    finally:
        spark.stop()


def run_tasks(
    spark: Any, function: Callable[[Item], Result], items: Sequence[Item], partitions: int = 0
) -> list[Result]:
    """One task per item, or the items dealt into some partitions; results in the items' order."""
    if not items:
        return []
    tasks = spark.sparkContext.parallelize(list(items), partitions or len(items)).map(function)
    return attempt(tasks.collect)


def attempt(action: Callable[[], Result]) -> Result:
    """Run a Spark action; a task that fails for good becomes one sentence."""
    try:
        return action()
    except Exception as error:
        raise XStreamError(f"a Spark task failed: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """The last line of a Python traceback inside Spark's message, or its first line."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if re.match(r"(\w+\.)*\w*(Error|Exception|Exit)\b", line)]
    return told[-1] if told else (lines[0] if lines else type(error).__name__)
