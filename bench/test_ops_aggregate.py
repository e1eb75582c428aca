"""A grouped window query against a hand-written loop, DuckDB and polars on the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import xstream as xs
from bench.report import Report
from xstream.testing import list_source

ROWS = 1 << 18  # few, so that some trials are undisturbed
BATCH = 8192
GROUPS = 1000
WINDOW = ROWS // 8
TRIALS = 25
VALUES = {"n": "count", "mean": ("mean", "x"), "lo": ("min", "x"), "hi": ("max", "x")}


def columns() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    return {
        "time": np.arange(ROWS, dtype=np.int64),
        "k": rng.integers(0, GROUPS, ROWS),
        "x": rng.normal(size=ROWS),
    }


@numba.njit  # type: ignore[untyped-decorator]
def by_hand(time, k, x, window, groups):  # type: ignore[no-untyped-def]
    """One tumbling window after another, over keys that are known to be 0 to groups - 1."""
    n = np.zeros(groups, np.int64)
    total, low, high = np.zeros(groups), np.zeros(groups), np.zeros(groups)
    checksum, reported, end = 0.0, 0, window
    for i in range(len(time) + 1):
        if i == len(time) or time[i] >= end:
            for g in range(groups):
                if n[g]:
                    checksum += total[g] / n[g] + low[g] + high[g]
                    reported += 1
            n[:], total[:], low[:], high[:] = 0, 0.0, np.inf, -np.inf
            end += window
        if i < len(time):
            if i == 0:
                low[:], high[:] = np.inf, -np.inf
            g = k[i]
            n[g] += 1
            total[g] += x[i]
            low[g] = min(low[g], x[i])
            high[g] = max(high[g], x[i])
    return reported, checksum


def query(data: dict[str, Any], step: int, batched: bool) -> Callable[[], tuple[float, int]]:
    """A function that returns seconds in the core and the number of groups."""
    q = xs.Query()
    if batched:
        cuts = range(0, ROWS, BATCH)
        rows: list[Any] = [
            tuple(xs.SigSeg(array[at : at + BATCH], at) for array in data.values()) for at in cuts
        ]
        schema: dict[str, Any] = {name: xs.Segment(a.dtype) for name, a in data.items()}
    else:
        rows = list(zip(*(array[: ROWS // 8].tolist() for array in data.values()), strict=True))
        schema = {"time": int, "k": int, "x": float}
    source = q.source(list_source(rows, schema))
    out = source.aggregate(VALUES, by="k", window=WINDOW, step=step, time="time").count()

    def run() -> tuple[float, int]:
        done = q.run()
        return done.wall_seconds, int(done[out])

    return run


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def test_ops_aggregate_against_a_loop_and_two_engines(benchmark: Any, report: Report) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    data = columns()
    frame = polars.DataFrame(data)
    table = frame.to_arrow()
    link = duckdb.connect(config={"threads": 1})
    link.register("rows", table)
    sql = (
        f"SELECT time // {WINDOW}, k, count(*), avg(x), min(x), max(x) FROM rows GROUP BY ALL"
    )  # fmt: skip
    lazy = (
        frame.lazy()
        .group_by((polars.col("time") // WINDOW).alias("w"), "k")
        .agg(polars.len(), polars.col("x").mean().alias("m"), polars.col("x").min().alias("lo"),
             polars.col("x").max().alias("hi"))
    )  # fmt: skip
    tumbling, sliding = query(data, WINDOW, True), query(data, WINDOW // 4, True)
    tuples = query(data, WINDOW, False)
    subjects: dict[str, Callable[[], tuple[float, int]]] = {
        "xstream, batches of 8,192 rows": tumbling,
        "xstream, a quarter of a window as step": sliding,
        "xstream, a tuple a row": tuples,
        "numba loop, keys as array indices": lambda: timed(
            lambda: by_hand(data["time"], data["k"], data["x"], WINDOW, GROUPS)[0]
        ),
        "DuckDB, one thread": lambda: timed(lambda: link.sql(sql).to_arrow_table().num_rows),
        "polars": lambda: timed(lambda: len(lazy.collect())),
    }
    results = {name: work() for name, work in subjects.items()}  # warms up
    assert results["numba loop, keys as array indices"][1] == results["DuckDB, one thread"][1]
    assert results["xstream, batches of 8,192 rows"][1] == results["polars"][1]
    benchmark.pedantic(tumbling, rounds=1)
    best = dict.fromkeys(subjects, float("inf"))
    for _ in range(TRIALS):
        for name, work in subjects.items():
            best[name] = min(best[name], work()[0])
    rates = {
        name: (ROWS // 8 if "a tuple" in name else ROWS) / seconds for name, seconds in best.items()
    }
    report.table(
        "Grouped windows: count, mean, min and max of 1,000 groups",
        ["engine", "million rows/s"],
        [[name, f"{rate / 1e6:.1f}"] for name, rate in rates.items()],
    )
    own = rates["xstream, batches of 8,192 rows"]
    for name in ("numba loop, keys as array indices", "DuckDB, one thread", "polars"):
        report.figure(
            f"aggregate against {name}", f"{own / 1e6:.1f} M rows/s", f"{rates[name] / 1e6:.1f}",
            f"{own / rates[name]:.2f}", "none", None,
        )  # fmt: skip
