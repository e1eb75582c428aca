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
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from linearroad import environment as environments
from linearroad.failures import full_disk, is_no_space, reason, root_cause
from linearroad.scratch import Scratch, scratch
from linearroad.spark_settings import (
    SessionOptions,
    is_local,
    loopback,
    settings_of,
    variables_set,
)
from linearroad.storage import is_remote, spark_uri
from xstream.console import require_package
from xstream.errors import InputError, XStreamError

__all__ = [
    "attempt", "check_executors", "check_storage", "java_version", "observed_count", "run_tasks",
    "session",
]  # fmt: skip

Item = TypeVar("Item")
Result = TypeVar("Result")
OLDEST_JAVA = 17
LOCAL_MASTER = "local[*]"
LOCAL_DIRS = "SPARK_LOCAL_DIRS"
LOCAL_IP = "SPARK_LOCAL_IP"
STOPPING_S = 20.0
SHIP = "ship the environment of the driver (docs/cluster.md)"
#: Set by spark-submit for the programs that it starts.
SUBMITTED = "PYSPARK_GATEWAY_PORT"


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


@contextmanager
def session(
    master: str | None = None, name: str = "linearroad", memory: str = "2g", cpus: int = 1
) -> Iterator[Any]:
    """A Spark session; an active one of this process is used and left alone.

    Within `spark-submit` the session is that of its cluster. `memory` limits Java: the local
    process of a local session, else each executor; `cpus` are the cores of a task. An interrupt
    kills Java at once, because the result of the running job is no longer needed.
    """
    require_spark()
    from pyspark.sql import SparkSession

    existing = SparkSession.getActiveSession()
    if existing is not None:
        yield existing
        return
    options = SessionOptions(master or LOCAL_MASTER, name, memory, cpus)
    if SUBMITTED in os.environ:
        yield from _submitted(options, master)
        return
    os.environ["PYSPARK_PYTHON"] = options.python
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    places = (os.environ.get(LOCAL_DIRS) or tempfile.gettempdir()).split(",")
    with scratch(Path(places[0]), "xstream-spark-") as room, _no_java_left(room):
        settings = settings_of(options, room.folder)
        gateway = _start_java(options.url, settings, room)
        killed = False
        try:
            with _killed_by_interrupt(gateway.proc):
                spark = _connect(options.url)
                check_executors(spark, options.url)
                yield spark
        except KeyboardInterrupt:
            killed = True
            raise
        finally:
            _stop_java(gateway, killed)


def _submitted(options: SessionOptions, master: str | None) -> Iterator[Any]:
    """The session within `spark-submit`, whose cluster and settings are respected."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    SparkContext._ensure_initialized()  # without Java, a configuration is empty
    conf = SparkConf()
    given = conf.get("spark.master", None)
    if master is not None and given is not None and master != given:
        raise InputError(f"--master {master} contradicts spark-submit --master {given}")
    options = replace(options, master=given or options.master)
    os.environ.setdefault("PYSPARK_PYTHON", options.python)
    for key, value in (options.defaults() | options.addresses() | options.archives()).items():
        conf.setIfMissing(key, value)
    try:
        SparkContext.getOrCreate(conf)
    except Exception as error:
        raise InputError(f"no Spark session on {given or options.url}: {reason(error)}") from error
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        check_executors(spark, spark.sparkContext.master)
        yield spark
    finally:
        spark.stop()


def check_executors(spark: Any, url: str) -> None:
    """Refuse a cluster whose executors have other versions than the driver."""
    if is_local(url):
        return
    from pyspark import cloudpickle

    context = spark.sparkContext
    slots = max(int(context.defaultParallelism), 1)
    # By value: the executors may lack this package.
    cloudpickle.register_pickle_by_value(environments)
    try:
        answers = attempt(context.parallelize(range(slots), slots).map(environments.found).collect)
    finally:
        cloudpickle.unregister_pickle_by_value(environments)
    for answer in answers:
        if (told := environments.difference(environments.own(), answer)) is not None:
            raise InputError(told)


def check_storage(spark: Any, *paths: Path) -> None:
    """Refuse storage that Spark itself cannot read: what pyarrow reads may lack a jar there."""
    context = spark.sparkContext
    for path in filter(is_remote, paths):
        uri = spark_uri(path)
        scheme = uri.partition(":")[0]
        try:
            system = context._jvm.org.apache.hadoop.fs.FileSystem
            system.get(context._jvm.java.net.URI(uri), context._jsc.hadoopConfiguration())
        except Exception as error:
            hint = "hadoop-aws" if scheme == "s3a" else "its Hadoop connector"
            raise InputError(
                f"Spark cannot read {scheme}:// here ({reason(error)}): add {hint} with "
                "spark.jars.packages, or use a folder (docs/cluster.md)"
            ) from error


def _start_java(master: str, settings: dict[str, str], room: Scratch) -> Any:
    """Start Java, with its output and its temporary files in the session's temporary folder."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if loopback(master):
        os.environ[LOCAL_IP] = "127.0.0.1"
    # Not `spark.local.dir`, which would apply to every worker of a cluster.
    environment = {LOCAL_DIRS: str(room.folder)}
    if "spark.driver.bindAddress" in settings:
        environment[LOCAL_IP] = settings["spark.driver.bindAddress"]  # where Spark's pages listen
    log = room.folder / "java.log"
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        with variables_set(environment), log.open("wb") as told:
            options = {"stdout": told, "stderr": told, "pass_fds": (room.lock,)}
            gateway = launch_gateway(conf, options)
    except Exception as error:
        text = log.read_text(errors="replace") if log.exists() else ""
        told_why = root_cause(text) if text.strip() else reason(error)
        raise InputError(f"no Spark session on {master}: {told_why}") from error
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
    local = is_local(spark.sparkContext.master)  # the same installation
    guarded = functools.partial(_run_task, function, None if local else environments.own())
    tasks = spark.sparkContext.parallelize(list(items), partitions or len(items)).map(guarded)
    results: list[Result | NoSpace | Refused] = attempt(tasks.collect)
    for result in results:
        if isinstance(result, NoSpace):
            raise XStreamError(full_disk())
        if isinstance(result, Refused):
            raise InputError(result.told)
    return cast(list[Result], results)


class NoSpace:
    """The result of a task that met a full disk; retrying it would fail as well."""


class Refused(NamedTuple):
    """The result of a task that cannot succeed: its input is bad, or its executor came later and
    has other versions."""

    told: str


def _run_task(
    function: Callable[[Item], Result], driver: dict[str, str] | None, item: Item
) -> Result | NoSpace | Refused:
    if driver is not None:
        told = environments.difference(driver, environments.own())
        if told is not None:
            return Refused(told)
    try:
        return function(item)
    except InputError as error:
        return Refused(str(error))
    except OSError as error:
        if not is_no_space(error):
            raise
        return NoSpace()


def attempt(action: Callable[[], Result]) -> Result:
    """Run a Spark action; a task that keeps failing becomes an error in one sentence."""
    try:
        return action()
    except Exception as error:
        told = reason(error)
        if "PYTHON_VERSION_MISMATCH" in told:
            raise InputError(f"{told.split('.')[0]}: {SHIP}") from error
        raise XStreamError(f"a Spark task failed: {told}") from error


def observed_count(frame: Any) -> tuple[Any, Callable[[], int]]:
    """A frame that counts its rows while an action reads it, and the count after the action."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    counting = frame.observe(observation, f.count(f.lit(1)).alias("rows"))
    return counting, lambda: int(observation.get["rows"])
