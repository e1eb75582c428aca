"""One measured run of the Linear Road queries, in a process of its own that can be pinned.

`python -m bench.linearroad_run INPUT OUT [--form parquet] [--core 0] [--threads 1] ...` prints a
line of JSON: the best of several runs from a warmed-up start to the last flush, by the wall clock
and by CPU time, and how far memory rose above what the process held after warm-up.
"""

from __future__ import annotations

import argparse
import gc
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


def operators_alone(asked: argparse.Namespace, history: object) -> dict[str, float]:
    """The query over SigSegs that are in memory already; answers are joined and counted."""
    from linearroad.input import merged, open_input
    from linearroad.network import RAW, build
    from linearroad.output.sink import join_answers
    from linearroad.queries.feeding import Clock, raw_rows

    import xstream as xs

    manager = xs.memory_manager(asked.memory)
    rows = [raw_rows(chunk, False, manager) for chunk in merged(open_input(asked.input))]
    gc.collect()
    gc.freeze()
    best: dict[str, float] = {}
    for _ in range(asked.runs + 1):  # the first one warms up
        query = xs.Query("linear road")
        network = build(query.source(xs.io.iterable(rows, out=RAW), name="rows"), history)
        answers = join_answers(network, Clock(None)).count()
        for stream in network.rejects:
            stream.count()
        wall, cpu = time.perf_counter(), time.process_time()
        done = query.run(asked.scheduler, manager, 1)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        best["wall_s"] = min(best.get("wall_s", wall), wall)
        best["cpu_s"] = min(best.get("cpu_s", cpu), cpu)
        best["reports"] = done.stats["segment statistics"].samples
    assert done[answers] > 0
    return best


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
    parser.add_argument("--alone", action="store_true", help="the operators, from memory")
    asked = parser.parse_args()
    if asked.core is not None:
        os.sched_setaffinity(0, {asked.core})

    import pyarrow as pa
    from linearroad.run.job import RunOptions, run
    from linearroad.tables.history_files import load_history

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    history = load_history(asked.history, None, None)
    if asked.alone:
        print(json.dumps(operators_alone(asked, history)))
        return
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
