"""The only place where pyspark is imported.

A session runs on `local[*]` by default and then listens on loopback only. It has no user interface
and starts its Python workers with the running interpreter. Its Java process ends with it; the
output of Java goes to a file in the session's temporary folder.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from linearroad.failures import full_disk, is_no_space, reason, root_cause
from linearroad.scratch import Scratch, scratch
from xstream.console import require_package
from xstream.errors import InputError, XStreamError

__all__ = ["attempt", "java_version", "observed_count", "run_tasks", "session"]

Item = TypeVar("Item")
Result = TypeVar("Result")
OLDEST_JAVA = 17
LOCAL_MASTER = "local[*]"
# An expressway is a task of minutes, so a task that fails is retried.
ATTEMPTS = 4
LOCAL_DIRS = "SPARK_LOCAL_DIRS"
STOPPING_S = 20.0
# Latency does not matter and there are few cores: use the cheapest garbage collector.
COLLECTOR = "-XX:+UseParallelGC"


def java_command() -> str | None:
    """The java that Spark starts: that of JAVA_HOME, or the first on the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        candidate = Path(home, "bin", "java")
        return str(candidate) if candidate.exists() else None
    return shutil.which("java")


def java_version(command: str) -> int | None:
    """The major version of a java, or None if it is not known."""
    try:
        output = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=60, check=False
        ).stderr
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(found.group(1)) if found else None


def require_spark() -> None:
    """Raise an error if Spark's Python packages or a suitable Java are missing."""
    require_package("pyspark")
    require_package("pandas")
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


def with_attempts(master: str) -> str:
    """A master that retries failed tasks; a local master ignores `spark.task.maxFailures`.

    >>> with_attempts("local"), with_attempts("local[2]"), with_attempts("spark://head:7077")
    ('local[1,4]', 'local[2,4]', 'spark://head:7077')
    """
    local = re.fullmatch(r"local(?:\[([^,\]]+)\])?", master)
    return f"local[{local.group(1) or 1},{ATTEMPTS}]" if local else master


@contextmanager
def session(
    master: str | None = None, name: str = "linearroad", memory: str = "2g"
) -> Iterator[Any]:
    """A Spark session; an active one of this process is used and left alone.

    `memory` limits Java: the local process of a local session, else each executor. An
    interrupt kills Java at once, because the result of the running job is no longer needed.
    """
    require_spark()
    from pyspark.sql import SparkSession

    existing = SparkSession.getActiveSession()
    if existing is not None:
        yield existing
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    url = with_attempts(master or LOCAL_MASTER)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    places = (os.environ.get(LOCAL_DIRS) or tempfile.gettempdir()).split(",")
    with scratch(Path(places[0]), "xstream-spark-") as room, _no_java_left(room):
        gateway = _start_java(url, _settings(url, name, memory, room.folder), room)
        killed = False
        try:
            with _killed_by_interrupt(gateway.proc):
                yield _connect(url)
        except KeyboardInterrupt:
            killed = True
            raise
        finally:
            _stop_java(gateway, killed)


def _settings(master: str, name: str, memory: str, folder: Path) -> dict[str, str]:
    local = master.startswith("local")
    logs = Path(__file__).with_name("log4j2.properties")
    settings = {
        "spark.master": master,
        "spark.app.name": name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
        "spark.driver.memory": memory if local else "1g",
        "spark.executor.memory": memory,
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile=file:{logs} -Djava.io.tmpdir={folder} {COLLECTOR}"
        ),
        "spark.executor.extraJavaOptions": COLLECTOR,
        "spark.task.maxFailures": str(ATTEMPTS),
    }
    if _loopback(master):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


def _loopback(master: str) -> bool:
    return re.match(r"local|spark://(127\.|localhost)", master) is not None


def _start_java(master: str, settings: dict[str, str], room: Scratch) -> Any:
    """Start Java, with its output and its temporary files in the session's temporary folder."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if _loopback(master):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Not `spark.local.dir`, which would apply to every worker of a cluster.
    before = os.environ.get(LOCAL_DIRS)
    os.environ[LOCAL_DIRS] = str(room.folder)
    log = room.folder / "java.log"
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        with log.open("wb") as told:
            options = {"stdout": told, "stderr": told, "pass_fds": (room.lock,)}
            gateway = launch_gateway(conf, options)
    except Exception as error:
        text = log.read_text(errors="replace") if log.exists() else ""
        told_why = root_cause(text) if text.strip() else reason(error)
        raise InputError(f"no Spark session on {master}: {told_why}") from error
    finally:
        if before is None:
            del os.environ[LOCAL_DIRS]
        else:
            os.environ[LOCAL_DIRS] = before
    SparkContext._ensure_initialized(gateway=gateway)
    return gateway


@contextmanager
def _no_java_left(room: Scratch) -> Iterator[None]:
    """Kill a Java whose start was interrupted; it would wait forever."""
    try:
        yield
    finally:
        import psutil

        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if child.environ().get(LOCAL_DIRS) == str(room.folder):
                    child.kill()


def _connect(master: str) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    handler = _interrupt_handler()
    try:
        # Java was started with these settings.
        SparkContext.getOrCreate(SparkConf())
    except Exception as error:
        raise InputError(f"no Spark session on {master}: {reason(error)}") from error
    finally:
        # A context installs a handler that waits for Java.
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _interrupt_handler() -> Any:
    """The handler of SIGINT, if this thread may set it."""
    main = threading.current_thread() is threading.main_thread()
    return signal.getsignal(signal.SIGINT) if main else None


@contextmanager
def _killed_by_interrupt(java: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill Java on an interrupt, then call the previous handler.

    When an interrupt ends a block, pyspark calls Java during cleanup, which would wait for the
    running job. Without Java the call fails, and the failure is reported as the interrupt.
    """
    before = _interrupt_handler()
    received = False

    def on_interrupt(number: int, frame: Any) -> None:
        nonlocal received
        received = True
        _expect_no_updates()
        java.kill()
        logging.disable(logging.CRITICAL)  # py4j logs every call that fails because of this
        if callable(before):
            before(number, frame)

    if callable(before):
        signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    except Exception as error:
        if received:
            raise KeyboardInterrupt from error
        raise
    finally:
        if callable(before):
            signal.signal(signal.SIGINT, before)
        if received:
            logging.disable(logging.NOTSET)


def _expect_no_updates() -> None:
    """Java's connection for accumulators ends with it: pyspark would print a traceback."""
    from pyspark import SparkContext

    server = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda request, client_address: None


def _stop_java(gateway: Any, killed: bool) -> None:
    """End the session and its Java; pyspark starts a new one the next time.

    A Java that was killed is not waited for: on a busy machine its threads take seconds to end.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    java: subprocess.Popen[bytes] = gateway.proc
    if killed:
        java.kill()
    else:
        _end(java, gateway, SparkSession._instantiatedSession)
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None


def _end(java: subprocess.Popen[bytes], gateway: Any, spark: Any) -> None:
    if java.poll() is None and spark is not None:
        try:
            spark.stop()
        except Exception:  # Java has just died: there is nothing left to stop
            java.kill()
    gateway.shutdown()  # has no effect if Java is dead
    if java.stdin is not None:
        java.stdin.close()  # makes Java exit
    try:
        java.wait(STOPPING_S)
    except subprocess.TimeoutExpired:
        java.kill()
        java.wait()


def run_tasks(
    spark: Any, function: Callable[[Item], Result], items: Sequence[Item], partitions: int = 0
) -> list[Result]:
    """Run one task per item, or distribute them to partitions; results are in item order."""
    if not items:
        return []
    guarded = functools.partial(_run_task, function)
    tasks = spark.sparkContext.parallelize(list(items), partitions or len(items)).map(guarded)
    results: list[Result | NoSpace] = attempt(tasks.collect)
    for result in results:
        if isinstance(result, NoSpace):
            raise XStreamError(full_disk())
    return cast(list[Result], results)


class NoSpace:
    """The result of a task that met a full disk; retrying it would fail as well."""


def _run_task(function: Callable[[Item], Result], item: Item) -> Result | NoSpace:
    try:
        return function(item)
    except OSError as error:
        if not is_no_space(error):
            raise
        return NoSpace()


def attempt(action: Callable[[], Result]) -> Result:
    """Run a Spark action; a task that keeps failing becomes an error in one sentence."""
    try:
        return action()
    except Exception as error:
        raise XStreamError(f"a Spark task failed: {reason(error)}") from error


def observed_count(frame: Any) -> tuple[Any, Callable[[], int]]:
    """A frame that counts its rows while an action reads it, and the count after the action."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    counting = frame.observe(observation, f.count(f.lit(1)).alias("rows"))
    return counting, lambda: int(observation.get["rows"])
