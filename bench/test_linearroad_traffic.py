"""Generation: CPU seconds per expressway, history rows per second, and scaling to two cores.

Run with `make bench-linearroad`, or only this file:
`python -m pytest bench/test_linearroad_traffic.py --benchmark-enable --benchmark-only -s`.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import resource
import time
from pathlib import Path

import numpy as np
import pytest
from linearroad.generation.layout import Layout
from linearroad.generation.parameters import TrafficParameters
from linearroad.generation.tasks import simulate_expressway, warm_up
from linearroad.history.tasks import write_day

THREE_HOURS = TrafficParameters(expressways=2, minutes=180, seed=1)
ONE_HOUR = TrafficParameters(expressways=2, minutes=60, seed=1)
MOST_CPU_SECONDS = 40.0
LEAST_ROWS_PER_SECOND = 2_000_000
MOST_TIMES_AS_LONG = 1.2
MOST_BYTES = 2 * 1024**3
VEHICLES = 150_000


def verdict(reached: bool) -> str:
    return "reached" if reached else "NOT REACHED"


def load() -> str:
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


@pytest.mark.timeout(1200)
def test_simulating_an_expressway(benchmark, tmp_path: Path) -> None:
    warm_up()
    cpu: list[float] = []

    def simulate() -> int:
        begin = time.process_time()
        entry = simulate_expressway(tmp_path, THREE_HOURS, 0)
        cpu.append(time.process_time() - begin)
        return int(entry["reports"])

    reports = benchmark.pedantic(simulate, rounds=2, iterations=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    benchmark.extra_info["cpu_seconds"] = cpu
    print(
        f"\nthree hours of one expressway: {min(cpu):.1f} CPU-seconds (at most "
        f"{MOST_CPU_SECONDS:.0f}: {verdict(min(cpu) <= MOST_CPU_SECONDS)}), {reports:,} reports, "
        f"peak {peak / 2**20:.0f} MiB; {load()}"
    )
    assert 10_800_000 <= reports <= 13_200_000
    assert peak < MOST_BYTES


def timed_day(root: Path, task: tuple[int, int]) -> tuple[int, float]:
    begin = time.process_time()
    rows = int(write_day(root, THREE_HOURS, task)["rows"])
    return rows, time.process_time() - begin


@pytest.mark.timeout(1200)
def test_writing_history_on_two_cores(benchmark, tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.vids(0).parent.mkdir(parents=True)
    np.save(layout.vids(0), np.arange(VEHICLES, dtype=np.int32))
    task = functools.partial(timed_day, tmp_path)
    days = [(0, day) for day in range(1, 71)]
    task(days[0])
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        pool.map(task, days[:4])
        done = benchmark.pedantic(lambda: pool.map(task, days, chunksize=1), rounds=2, iterations=1)
    rows, cpu = sum(rows for rows, _ in done), sum(cpu for _, cpu in done)
    # CPU time, which other load does not affect much; wall-clock time is shown as well.
    rate, by_clock = 2 * rows / cpu, rows / benchmark.stats.stats.min
    print(
        f"\nhistory: {rows:,} rows, {rate / 1e6:.2f} million rows/s by the CPU time of two cores "
        f"(at least {LEAST_ROWS_PER_SECOND / 1e6:.0f}: {verdict(rate >= LEAST_ROWS_PER_SECOND)}), "
        f"{by_clock / 1e6:.2f} by the clock; {load()}"
    )
    assert rows == 70 * 288_000 + 69 * VEHICLES


def timed_simulation(root: Path, xway: int) -> float:
    begin = time.process_time()
    simulate_expressway(root, ONE_HOUR, xway)
    return time.process_time() - begin


@pytest.mark.timeout(1200)
def test_two_expressways_on_two_cores(benchmark, tmp_path: Path) -> None:
    task = functools.partial(timed_simulation, tmp_path)
    alone: list[tuple[float, float]] = []
    together: list[float] = []
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        pool.map(task, [0, 1], chunksize=1)
        for _ in range(3):
            begin = time.perf_counter()
            (cpu,) = pool.map(task, [0])
            alone.append((time.perf_counter() - begin, cpu))
        benchmark.pedantic(
            lambda: together.append(max(pool.map(task, [0, 1], chunksize=1))),
            rounds=3,
            iterations=1,
        )
    by_clock = benchmark.stats.stats.min / min(clock for clock, _ in alone)
    # On a busy machine wall-clock time is unreliable; CPU time still shows how much two workers
    # slow each other down.
    by_cpu = min(together) / min(cpu for _, cpu in alone)
    print(
        f"\ntwo expressways on two cores take {by_clock:.2f} times as long as one by the clock, "
        f"{by_cpu:.2f} by CPU time (at most {MOST_TIMES_AS_LONG}: "
        f"{verdict(by_clock <= MOST_TIMES_AS_LONG)} by the clock); {load()}"
    )
