"""Within `spark-submit`, its master and its settings hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from linearroad import spark as sparks

from tests.linearroad.cluster.standalone import spark_home

pytestmark = [pytest.mark.spark, pytest.mark.slow]
MASTER = "local-cluster[1,1,1024]"
PROGRAM = """
import json, sys
from linearroad import spark as sparks

with sparks.session(*sys.argv[1:]) as spark:
    context = spark.sparkContext
    told = {name: context.getConf().get(name) for name in (
        "spark.master", "spark.executor.memory", "spark.task.maxFailures", "spark.ui.enabled",
        "spark.driver.host", "spark.driver.bindAddress",
    )}
    told["python"] = sparks.run_tasks(spark, lambda _: sys.executable, [0])
    print("told", json.dumps(told))
"""


def submit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        sparks.require_spark()
    except ValueError as error:
        pytest.skip(str(error))
    program = folder / "program.py"
    program.write_text(PROGRAM)
    settings = ("spark.executor.memory=900m", "spark.task.maxFailures=7")
    given = [word for setting in settings for word in ("--conf", setting)]
    return subprocess.run(
        [spark_home() / "bin" / "spark-submit", "--master", MASTER, *given, program, *arguments],
        capture_output=True, text=True, check=False, cwd=folder,
        env={
            **os.environ, "SPARK_LOCAL_DIRS": str(folder), "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
    )  # fmt: skip


def test_its_master_and_its_settings_hold(tmp_path: Path) -> None:
    done = submit(tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [each for each in done.stdout.splitlines() if each.startswith("told ")]
    assert json.loads(line.removeprefix("told ")) == {
        "spark.master": MASTER, "spark.executor.memory": "900m", "spark.task.maxFailures": "7",
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1", "python": [sys.executable],
    }  # fmt: skip


def test_another_master_is_refused(tmp_path: Path) -> None:
    done = submit(tmp_path, "spark://elsewhere:7077")
    assert done.returncode != 0
    told = f"--master spark://elsewhere:7077 contradicts spark-submit --master {MASTER}"
    assert told in done.stdout + done.stderr
