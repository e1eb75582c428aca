"""Measures the Linear Road queries in a separate process that can be pinned to a core.

`python -m bench.linearroad_run INPUT OUT [--form parquet] [--core 0] [--threads 1] ...` prints
one line of JSON: the best of several runs from a warmed-up start to the last flush, in wall-clock
and CPU time, and the increase of memory since warm-up.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import psutil


def peak_memory_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    return 0


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("input", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--history", type=Path)
    parser.add_argument("--form", default="parquet")
    parser.add_argument("--core", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scheduler", default="df")
    parser.add_argument("--memory", default="refcount-lazy")
    parser.add_argument("--minutes", type=int)
    parser.add_argument("--runs", type=int, default=1)
    asked = parser.parse_args()
    if asked.core is not None:
        os.sched_setaffinity(0, {asked.core})

    import pyarrow as pa
    from linearroad.run.job import RunOptions, run
    from linearroad.tables.history import load_history

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    history = load_history(asked.history, None, None)
    common = {name: getattr(asked, name) for name in ("form", "scheduler", "memory", "threads")}
    run(asked.input, asked.out, history, RunOptions(minutes=3, **common))
    before = psutil.Process().memory_info().rss
    forget_peak()
    best: dict[str, float] = {}
    for _ in range(asked.runs):
        begin = time.process_time()
        done = run(asked.input, asked.out, history, RunOptions(minutes=asked.minutes, **common))
        cpu = time.process_time() - begin
        best["wall_s"] = min(best.get("wall_s", cpu + 1e9), done.wall_seconds)
        best["cpu_s"] = min(best.get("cpu_s", cpu), cpu)
    best["risen_bytes"] = peak_memory_bytes() - before
    best["warm_bytes"] = before
    print(json.dumps({"reports": done.reports, "rows": done.rows} | best))


if __name__ == "__main__":
    main()
