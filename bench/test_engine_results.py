"""The cost of a kernel's result, by the way it is returned, against a bare loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import xstream as xs
from bench.report import Report

GAIN = np.float32(1.01)
TRIALS = 5


@xs.kernel
def expression(window, gain):
    return window * gain


@xs.kernel
def made(window, gain):
    result = np.empty_like(window)
    for i in range(len(window)):
        result[i] = window[i] * gain
    return result


@xs.kernel(out=xs.Out("float32"))
def filled(window, gain, out):
    for i in range(len(window)):
        out[i] = window[i] * gain


@xs.kernel
def part(window, gain):
    return window[1:]


@numba.njit
def bare(samples, buffer, gain):
    width = len(buffer)
    for first in range(0, len(samples), width):
        window = samples[first : first + width]
        for i in range(width):
            buffer[i] = window[i] * gain


def window_ns(work: Callable[[], object], windows: int) -> float:
    """CPU nanoseconds per window in the best trial."""
    work()
    spent = []
    for _ in range(TRIALS):
        begun = time.process_time_ns()
        work()
        spent.append(time.process_time_ns() - begun)
    return min(spent) / windows


def query(kernel: xs.Kernel, samples: Any, width: int, repeat: int, stages: int) -> xs.Query:
    q = xs.Query()
    stream = q.source(xs.io.array(samples, window=width, repeat=repeat))
    for _ in range(stages):
        stream = stream.map(kernel, GAIN)
    stream.count()
    return q


def test_engine_results_of_kernels(benchmark: Any, report: Report) -> None:
    rows = []
    for width, repeat in ((32, 20), (4096, 500), (1 << 20, 5)):
        samples = np.ones(max(1 << 16, 4 * width), np.float32)
        windows = len(samples) // width * repeat
        buffer = np.empty(width, np.float32)

        def loop(samples: Any = samples, buffer: Any = buffer, repeat: int = repeat) -> None:
            for _ in range(repeat):
                bare(samples, buffer, GAIN)

        base = window_ns(loop, windows)
        rows.append([f"{width:,}", "bare loop into a buffer", f"{base:,.0f}", ""])
        for name, kernel, stages in (
            ("expression", expression, 1), ("array that it made", made, 1),
            ("out= to fill", filled, 1), ("part of the input", part, 1),
            ("expression, ten in a row", expression, 10),
        ):  # fmt: skip
            q = query(kernel, samples, width, repeat, stages)
            found = window_ns(lambda q=q: q.run(fuse=False), windows)  # type: ignore[misc]
            rows.append([f"{width:,}", name, f"{found:,.0f}", f"{base / found:.2f}"])
    report.table(
        "Results of kernels, not fused", ["samples", "result", "ns a window", "of bare"], rows
    )
    last = query(expression, np.ones(1 << 16, np.float32), 4096, 100, 1)
    benchmark.pedantic(lambda: last.run(fuse=False), rounds=3)
