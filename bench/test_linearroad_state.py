"""State of Linear Road as segments: the minutes of a LAV, and the reports of the last 30 seconds.

The operators keep both in arrays by hand. Here the same work is done over a rolling segment.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from linearroad.operators.statistics import MINUTES, close_minutes, latest_average

import xstream as xs
from bench.reporting import Report
from xstream.bench.queries import Engine
from xstream.bench.trials import Result, interleave

KEYS = 200  # both directions of an expressway
SAMPLES = 20_000
TRIALS = 15
MINUTE = np.dtype([("total", "f8"), ("weight", "i4")])
NO_LAV = -1


@xs.kernel(
    state={
        "total": np.zeros(KEYS),
        "amount": np.zeros(KEYS, np.int32),
        "history": np.zeros(MINUTES * KEYS),
        "weight": np.zeros(MINUTES * KEYS, np.int32),
    }
)
def by_arrays(minute, speed, state):
    """What the operator `statistics` does when a minute ends."""
    total, amount = state.total, state.amount
    close_minutes(total, amount, state.history, state.weight, KEYS, minute, minute + 1)
    lavs = 0
    for key in range(KEYS):
        lavs += latest_average(state.history, state.weight, KEYS, key, False, NO_LAV, 0.0)
    total[minute % KEYS] += speed
    amount[minute % KEYS] += 1
    return lavs


@xs.kernel(
    state={
        "total": np.zeros(KEYS),
        "amount": np.zeros(KEYS, np.int32),
        "minutes": xs.Rolling(MINUTE),
    }
)
def by_segments(minute, speed, state):
    """The same over one segment, which grows by the records of a minute and is cut at its front."""
    total, amount, minutes = state.total, state.amount, state.minutes
    closed = minutes.room(KEYS)
    for key in range(KEYS):
        closed[key].total, closed[key].weight = total[key], amount[key]
        total[key], amount[key] = 0.0, 0
    minutes.append(KEYS)
    minutes.cut(minutes.stop - MINUTES * KEYS)
    sums, counted = np.zeros(KEYS), np.zeros(KEYS, np.int32)
    for first in range(minutes.start, minutes.stop, KEYS):
        one = minutes.at(first, KEYS)
        for key in range(KEYS):
            if one[key].weight > 0:
                sums[key] += one[key].total / one[key].weight
                counted[key] += 1
    lavs = 0
    for key in range(KEYS):
        lavs += np.int64(np.floor(sums[key] / counted[key] + 1e-9)) if counted[key] else NO_LAV
    total[minute % KEYS] += speed
    amount[minute % KEYS] += 1
    return lavs


def declared(kernel: Any) -> tuple[xs.Query, Any]:
    """One tuple per minute, with one report in it: only the end of the minute takes time."""
    speeds = np.random.default_rng(1).uniform(10, 90, SAMPLES)
    query = xs.Query(kernel.name)
    return query, query.source(xs.io.samples(speeds)).map(kernel).collect()


def held_bytes(query: xs.Query, recording: int) -> int:
    """What the state takes in the memory manager, at most."""
    manager = xs.memory_manager("refcount-lazy", limit_bytes=1 << 40)  # counts every byte at once
    query.run(memory=manager)
    return int(manager.stats().peak_bytes) - recording


def in_turns(benchmark: Any, queries: dict[str, xs.Query]) -> dict[str, Result]:
    contenders = {
        name: partial(lambda query: Engine().timed_run(query)[1], query)
        for name, query in queries.items()
    }
    found: dict[str, Result] = benchmark.pedantic(lambda: interleave(contenders, TRIALS), rounds=1)
    return found


def test_lav_over_segments_of_minutes(benchmark: Any, report: Report) -> None:
    found = {}
    for kernel in (by_arrays, by_segments):
        query, out = declared(kernel)
        found[kernel.name] = query.run()[out]
    assert found["by_arrays"] == found["by_segments"]
    results = in_turns(
        benchmark, {kernel.name: declared(kernel)[0] for kernel in (by_arrays, by_segments)}
    )
    ns = {name: 1e9 / result.samples_per_second for name, result in results.items()}
    held = held_bytes(declared(by_segments)[0], recording=8 * SAMPLES)
    report.figure(
        f"LAV of {KEYS} segments of the road, ns per minute",
        f"segments of minutes: {ns['by_segments']:,.0f}, {held:,} bytes",
        f"arrays: {ns['by_arrays']:,.0f}, {MINUTES * KEYS * MINUTE.itemsize:,} bytes",
        f"{ns['by_arrays'] / ns['by_segments']:.2f}",
        "shown",
    )


# -- the reports of the last 30 seconds --------------------------------------------------------

PERIOD, RING = 30, 32  # seconds
WORDS = 3  # int32 in a packed report
SECONDS = 2000


@xs.kernel(state={"kept": np.zeros(RING, np.int32), "second": np.zeros(1, np.int64)})
def ring(window, state):
    """Batches in a ring; a report is compared with the one from 30 seconds ago."""
    n, second = len(window), state.second[0]
    kept = state.kept
    if len(kept) < RING * n:
        kept = xs.grow(state.kept, RING * n)
    new, old = second % RING * n, (second - PERIOD) % RING * n
    changed = 0
    for i in range(n):
        kept[new + i] = window[i]
        changed += window[i] ^ kept[old + i]
    state.second[0] = second + 1
    return changed


@xs.kernel(state={"kept": xs.Rolling(np.int32)})
def rolling(window, state):
    """The same in one segment, which is appended to and cut once per second."""
    n, kept = len(window), state.kept
    room = kept.room(n)
    for i in range(n):
        room[i] = window[i]
    kept.append(n)
    kept.cut(kept.stop - (PERIOD + 1) * n)
    changed = 0
    if kept.stop - kept.start == (PERIOD + 1) * n:
        before, after = kept.at(kept.start, n), kept.at(kept.stop - n, n)
        for i in range(n):
            changed += after[i] ^ before[i]
    else:
        for i in range(n):
            changed += window[i]
    return changed


def seconds(kernel: Any, reports: int) -> tuple[xs.Query, Any]:
    words = np.arange(SECONDS * reports * WORDS, dtype=np.int32)
    query = xs.Query(kernel.name)
    return query, query.source(xs.io.array(words, window=reports * WORDS)).map(kernel).collect()


@pytest.mark.parametrize("reports", [30, 900])
def test_reports_of_thirty_seconds(benchmark: Any, report: Report, reports: int) -> None:
    found = {}
    for kernel in (ring, rolling):
        query, out = seconds(kernel, reports)
        found[kernel.name] = query.run()[out]
    assert found["ring"] == found["rolling"]
    results = in_turns(
        benchmark, {kernel.name: seconds(kernel, reports)[0] for kernel in (ring, rolling)}
    )
    ns = {name: 1e9 / result.samples_per_second * WORDS for name, result in results.items()}
    words = 4 * WORDS * reports
    held = held_bytes(seconds(rolling, reports)[0], recording=words * SECONDS)
    report.figure(
        f"{reports} reports per second, kept for {PERIOD} s, ns per report",
        f"rolling segment: {ns['rolling']:.2f}, {held / reports:,.0f} bytes per report and second",
        f"ring: {ns['ring']:.2f}, {RING * words / reports:,.0f} bytes",
        f"{ns['ring'] / ns['rolling']:.2f}",
        "shown",
    )
