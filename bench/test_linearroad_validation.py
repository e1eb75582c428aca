"""Validation of three hours of one expressway, from start-up to verdict, on one and two cores.

Run with `make bench-linearroad`, or only this file:
`python -m pytest bench/test_linearroad_validation.py --benchmark-enable --benchmark-only -s`.
XSTREAM_TRAFFIC names a generated directory with history to use instead of a new one, and
XSTREAM_BENCH_TEN=1 adds ten expressways.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

XSTREAM = str(Path(sys.executable).with_name("xstream"))
MOST_SECONDS = 60.0
MOST_BYTES = 8 * 1024**3


def verdict(reached: bool) -> str:
    return "reached" if reached else "NOT REACHED"


def load() -> str:
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def command(*arguments: object) -> list[str]:
    return [XSTREAM, "linearroad", *map(str, arguments)]


@dataclass
class Cost:
    """The cost of a program and its child processes."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    output: str = ""


def watched(call: list[str]) -> Cost:
    """Run a program; memory is the sum over its processes, sampled ten times per second."""
    cost, done = Cost(), threading.Event()
    begin = time.perf_counter()
    process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
    root = psutil.Process(process.pid)

    def watch() -> None:
        while not done.wait(0.1):
            used, cpu = 0, 0.0
            try:
                for each in (root, *root.children(recursive=True)):
                    used += each.memory_info().rss
                    cpu += sum(each.cpu_times()[:4])
            except psutil.Error:
                continue
            cost.peak_bytes = max(cost.peak_bytes, used)
            cost.cpu_seconds = max(cost.cpu_seconds, cpu)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    cost.output, _ = process.communicate()
    done.set()
    watcher.join()
    cost.seconds = time.perf_counter() - begin
    assert process.returncode == 0, cost.output[-2000:]
    return cost


def prepared(folder: Path, expressways: int) -> tuple[Path, Path]:
    """Traffic with history, and a run's answers."""
    given = os.environ.get("XSTREAM_TRAFFIC") if expressways == 1 else None
    traffic = Path(given) if given else folder / "traffic"
    if not given:
        size = ("--expressways", expressways, "--minutes", 180, "--seed", 1, "--history")
        subprocess.run(command("generate", "--out", traffic, *size), check=True)
    answers = folder / "answers"
    paths = ("--input", traffic, "--history", traffic, "--out", answers)
    subprocess.run(command("run", *paths, "--format", "parquet"), check=True)
    return traffic, answers


def validation(traffic: Path, answers: Path, cores: int) -> Cost:
    paths = ("--input", traffic, "--history", traffic, "--output", answers)
    cost = watched(command("validate", *paths, "--master", f"local[{cores}]", "--json"))
    told = json.loads(cost.output)
    assert told["passed"]
    return cost


@pytest.fixture(scope="module")
def one_expressway(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return prepared(tmp_path_factory.mktemp("one"), 1)


@pytest.mark.timeout(3600)
def test_validating_three_hours_of_one_expressway(
    benchmark, one_expressway: tuple[Path, Path]
) -> None:
    cost = benchmark.pedantic(lambda: validation(*one_expressway, 2), rounds=1, iterations=1)
    alone = validation(*one_expressway, 1)
    reached = cost.seconds <= MOST_SECONDS and cost.peak_bytes <= MOST_BYTES
    print(
        f"\nthree hours of one expressway validated in {cost.seconds:.0f} s on two cores (at most "
        f"{MOST_SECONDS:.0f}), peak {cost.peak_bytes / 2**30:.1f} GiB (at most 8): "
        f"{verdict(reached)}; {cost.cpu_seconds:.0f} CPU-seconds; on one core "
        f"{alone.seconds:.0f} s, {alone.seconds / cost.seconds:.2f} times as long; {load()}"
    )


@pytest.mark.timeout(4 * 3600)
@pytest.mark.skipif("XSTREAM_BENCH_TEN" not in os.environ, reason="XSTREAM_BENCH_TEN is not set")
def test_validating_three_hours_of_ten_expressways(benchmark, tmp_path: Path) -> None:
    traffic, answers = prepared(tmp_path, 10)
    cost = benchmark.pedantic(lambda: validation(traffic, answers, 2), rounds=1, iterations=1)
    print(
        f"\nthree hours of ten expressways validated in {cost.seconds:.0f} s, "
        f"{cost.cpu_seconds:.0f} CPU-seconds, peak {cost.peak_bytes / 2**30:.1f} GiB "
        f"(at most 8: {verdict(cost.peak_bytes <= MOST_BYTES)}); {load()}"
    )
