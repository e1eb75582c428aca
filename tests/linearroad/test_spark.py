"""Spark sessions: quiet, interruptible, with retries and clear errors."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from linearroad import environment as environments
from linearroad import spark as sparks
from linearroad.failures import one_sentence, root_cause
from linearroad.scratch import UNLOCKED_FOR_S, claimed, scratch
from linearroad.storage import place

from tests.linearroad.validation.runs import write_run
from xstream.errors import InputError, XStreamError

XSTREAM = Path(sys.executable).with_name("xstream")
JAVA = """An error occurred while calling o174.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 7.0 failed
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2)
Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(Errors.scala:850)
Caused by: io.airlift.compress.MalformedInputException: all input must be consumed: offset=2532
\tat io.airlift.compress.lz4.Lz4RawDecompressor.decompress(Lz4RawDecompressor.java:89)
\t... 23 more
"""
PYTHON = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: org.apache.spark.api.python
Traceback (most recent call last):
  File "worker.py", line 1, in main
ValueError: item 3 is bad

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:5)
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (JAVA, "MalformedInputException: all input must be consumed: offset=2532"),
        (PYTHON, "ValueError: item 3 is bad"),
        (f"{JAVA}Caused by: java.io.IOException: No space left on device", "No space left"),
        (": java.lang.OutOfMemoryError: Java heap space\n\tat a.b", "OutOfMemoryError: Java heap"),
        ("something else\nand more", "something else"),
    ],
)
def test_the_root_cause_is_found_in_a_stack(text: str, cause: str) -> None:
    assert cause in root_cause(text)
    assert "\n" not in root_cause(text)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError("Error writing bytes to file. Detail: [errno 28] No space left on device"),
        OSError("12000 requested and 6690 written"),
    ],
)
def test_a_full_disk_is_one_sentence_that_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def write() -> None:
        with one_sentence(tmp_path):
            raise error

    free = {tmp_path: 0}
    monkeypatch.setattr(
        shutil, "disk_usage", lambda place: SimpleNamespace(free=free.get(place, 10**9))
    )
    with pytest.raises(XStreamError, match=f"^no space left on device: the disk of {tmp_path} is"):
        write()


@pytest.mark.spark
def test_a_full_disk_ends_a_task_at_once_with_one_sentence(
    spark_session: object, tmp_path: Path
) -> None:
    def fill(item: int) -> int:
        with (tmp_path / "tried").open("a") as tried:
            tried.write("x")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(XStreamError, match=r"^no space left on device: the disk of /\S+ is full$"):
        sparks.run_tasks(spark_session, fill, [3])
    assert (tmp_path / "tried").read_text() == "x"


@pytest.mark.spark
def test_bad_input_ends_a_task_at_once_with_its_sentence(
    spark_session: object, tmp_path: Path
) -> None:
    def refuse(item: int) -> int:
        with (tmp_path / "tried").open("a") as tried:
            tried.write("x")
        raise InputError("rows.csv cannot be read to its end")

    with pytest.raises(InputError, match=r"^rows.csv cannot be read to its end$"):
        sparks.run_tasks(spark_session, refuse, [3])
    assert (tmp_path / "tried").read_text() == "x"


def test_an_executor_with_other_versions_is_refused_in_one_sentence() -> None:
    here = environments.own()
    assert environments.difference(here, here) is None
    for name, there, told in [
        ("Python", "3.9", "executors on far have Python 3.9, not "),
        ("pyarrow", "none", "executors on far have no pyarrow, not "),
        ("code", "0", "another state of the source code of xstream, not that of the driver"),
    ]:
        sentence = environments.difference(here, {**here, "host": "far", name: there})
        assert sentence is not None
        assert told in sentence
        assert "\n" not in sentence


@pytest.mark.spark
def test_a_failure_inside_java_names_its_cause(spark_session: object, tmp_path: Path) -> None:
    frame = spark_session.sql("SELECT assert_true(id < 3, 'too many') FROM range(5)")  # type: ignore[attr-defined]
    with pytest.raises(XStreamError, match=r"^a Spark task failed: .*too many") as error:
        sparks.attempt(lambda: frame.write.parquet(str(tmp_path / "table")))
    assert "\n" not in str(error.value)


@pytest.mark.spark
def test_storage_that_spark_cannot_read_is_refused_in_one_sentence(
    spark_session: object, tmp_path: Path
) -> None:
    sparks.check_storage(spark_session, tmp_path)
    with pytest.raises(InputError) as refused:
        sparks.check_storage(spark_session, tmp_path, place("s3://bucket/road"))
    told = str(refused.value)
    assert told.startswith("Spark cannot read s3a:// here (ClassNotFoundException: ")
    assert told.endswith(
        "): add hadoop-aws with spark.jars.packages, or use a folder (docs/cluster.md)"
    )
    assert "\n" not in told


@pytest.mark.spark
def test_a_task_that_fails_once_is_tried_again(spark_session: object, tmp_path: Path) -> None:
    marker = tmp_path / "tried"

    def fail_once(item: int) -> int:
        if not marker.exists():
            marker.touch()
            raise OSError("a disk that hiccups")
        return item

    assert sparks.run_tasks(spark_session, fail_once, [3]) == [3]
    assert marker.exists()


HOLDER = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from linearroad.scratch import scratch
with scratch(Path(sys.argv[1]), ".validation-"):
    print("ready", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_leaves_goes_with_the_next_one(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        (other,) = tmp_path.iterdir()
        with scratch(tmp_path, ".validation-") as mine:
            assert set(tmp_path.iterdir()) == {other, mine.folder}
        holder.kill()
    assert list(tmp_path.iterdir()) == [other]
    with scratch(tmp_path, ".validation-") as mine:
        assert list(tmp_path.iterdir()) == [mine.folder]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_lock_is_removed_when_it_is_old(tmp_path: Path) -> None:
    old, new = tmp_path / ".validation-old", tmp_path / ".validation-new"
    old.mkdir()
    new.mkdir()
    os.utime(old, (0, time.time() - 2 * UNLOCKED_FOR_S))
    with scratch(tmp_path, ".validation-"):
        assert not old.exists()
        assert new.exists()


def test_a_folder_is_claimed_once(tmp_path: Path) -> None:
    with claimed(tmp_path) as first, claimed(tmp_path) as second:
        assert first
        assert not second


def interrupted(command: list[str], begun: Callable[[], bool]) -> tuple[int, list[str]]:
    """Interrupt a command and all its processes, as a terminal does, once it has begun its work."""
    process = subprocess.Popen(
        [str(XSTREAM), "linearroad", *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        # A shell that starts tests in the background leaves SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        for _ in range(2400):
            if begun() or process.poll() is not None:
                break
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        began = time.monotonic()
        printed, errors = process.communicate(timeout=60)
        assert time.monotonic() - began < 15
    finally:
        process.kill()
    assert printed == ""
    shown = [line for line in errors.splitlines() if line and " of " not in line]
    return process.returncode, shown


@pytest.mark.spark
def test_an_interrupt_while_java_starts_leaves_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("java") is None:
        pytest.skip("no Java")
    (tmp_path / "rows.csv").write_text("")
    run, scratches = tmp_path / "run", tmp_path / "scratch"
    write_run(run, [])
    scratches.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(scratches))

    def started() -> list[str]:
        """Java processes of this test, whatever their parent is."""
        commands = [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
        return [each[0] for each in commands if each and str(scratches) in " ".join(each)]

    code, lines = interrupted(
        ["validate", "--input", str(tmp_path / "rows.csv"), "--output", str(run)],
        lambda: any("java" in command for command in started()),
    )
    assert (code, len(lines)) == (130, 1)
    for _ in range(200):
        if not started():
            break
        time.sleep(0.05)
    assert started() == []
    assert list(scratches.iterdir()) == []


@pytest.mark.slow
@pytest.mark.spark
def test_an_interrupted_validation_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("no Java")
    (tmp_path / "rows.csv").write_text("0,5,4711,50,0,1,0,2,11000,-1,-1,-1,-1,-1,-1\n")
    run = tmp_path / "run"
    write_run(run, ["0,4711,5,5.000,-1,0"])
    before = sorted(run.iterdir())
    code, lines = interrupted(
        ["validate", "--input", str(tmp_path / "rows.csv"), "--output", str(run)],
        lambda: any(run.glob(".validation-*")),
    )
    assert lines == [f"xstream: interrupted: nothing is said about the answers in {run}"]
    assert code == 130
    assert sorted(run.iterdir()) == before


@pytest.mark.spark
def test_an_interrupted_generation_says_what_is_kept(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("no Java")
    out = tmp_path / "out"
    code, lines = interrupted(
        ["generate", "--out", str(out), "--minutes", "5", "--from-minute", "300"],
        lambda: (out / ".work" / "simulated-00000.done").exists(),
    )
    assert lines == [
        f"xstream: interrupted: finished expressways are kept in {out}; run the same command "
        "again to continue"
    ]
    assert code == 130
