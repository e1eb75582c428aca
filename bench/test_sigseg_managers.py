"""The cost of passing, cutting and joining a window of 4,096 float32 with each manager."""

from __future__ import annotations

from typing import Any

import numpy as np
from xstream._native import lib

import xstream as xs
from bench.report import Report, best_ns

WIDTH = 4096
CALLS = 500


def costs(memory: str) -> dict[str, tuple[float, int]]:
    """Return ns and copied bytes of each operation."""
    mm = xs.memory_manager(memory)
    samples = np.ones(WIDTH, np.float32)
    a, b = xs.SigSeg(samples, 0, memory=mm), xs.SigSeg(samples, WIDTH, memory=mm)
    a_handle, b_handle = a._handle, b._handle
    operations = {
        "pass": lambda: lib.xs_seg_drop(lib.xs_seg_share(a_handle)),
        "subseg": lambda: lib.xs_seg_drop(lib.xs_seg_subseg(a_handle, 1024, 2048)),
        "append": lambda: lib.xs_seg_drop(lib.xs_seg_append(a_handle, b_handle)),
    }
    measured = {}
    for name, operation in operations.items():
        ns = best_ns(operation, CALLS)
        before = mm.stats().bytes_copied
        operation()
        measured[name] = ns, mm.stats().bytes_copied - before
    joined = a.append(b)
    assert np.array_equal(np.asarray(joined), np.ones(2 * WIDTH, np.float32))
    return measured


def test_passing_cutting_and_joining_under_each_manager(benchmark: Any, report: Report) -> None:
    measured = benchmark.pedantic(
        lambda: {memory: costs(memory) for memory in xs.MANAGER_NAMES}, rounds=1
    )
    report.table(
        "One window of 4,096 float32 (16 kB): ns in all, with two calls from Python; bytes copied",
        ["manager", "pass", "subseg of half", "append, the end taken already"],
        [
            [memory, *[f"{ns:,.0f} ns, {copied:,} B" for ns, copied in row.values()]]
            for memory, row in measured.items()
        ],
    )
