"""Relation updates and lookups, one tuple at a time, against a bare hop and a Python dict."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import xstream as xs
from bench.report import Report
from xstream.testing import list_source

TUPLES = 1 << 16
KEYS = 1 << 15
TRIALS = 40


def query(build: Callable[[xs.Query, xs.Stream], Any], keys: list[int]) -> Callable[[], float]:
    """A function that returns nanoseconds per tuple in the core."""
    q = xs.Query()
    build(q, q.source(list_source(keys, {"k": int})))
    return lambda: q.run().wall_seconds / TUPLES * 1e9


def updated(q: xs.Query, stream: xs.Stream) -> Any:
    table = q.relation("seen", {"k": int, "n": int}, key="k")
    return stream.update(table, {"n": ("add", 1)}, returning="n").count()


def looked_up(q: xs.Query, stream: xs.Stream) -> Any:
    contents = {"k": np.arange(KEYS), "n": np.arange(KEYS)}
    table = q.relation("known", {"k": int, "n": int}, key="k", contents=contents)
    return stream.lookup(table).count()


def in_a_dict(keys: list[int]) -> float:
    begin, seen = time.perf_counter_ns(), dict[int, int]()
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
    return (time.perf_counter_ns() - begin) / TUPLES


def test_ops_relation_against_a_bare_hop(benchmark: Any, report: Report) -> None:
    keys = np.random.default_rng(2).integers(0, KEYS, TUPLES).tolist()
    q = xs.Query()
    table = q.relation("seen", {"k": int, "n": int}, key="k")
    q.source(list_source(keys, {"k": int})).update(table, {"n": ("add", 1)})
    assert int(q.run()[table]["n"].sum()) == TUPLES
    subjects: dict[str, Callable[[], float]] = {
        "update": query(updated, keys),
        "lookup": query(looked_up, keys),
        "a bare hop": query(lambda q, stream: stream.count(), keys),
        "a Python dict": lambda: in_a_dict(keys),
    }
    benchmark.pedantic(subjects["update"], rounds=1)
    best = dict.fromkeys(subjects, float("inf"))
    for _ in range(TRIALS):
        for name, work in subjects.items():
            best[name] = min(best[name], work())
    for name in ("update", "lookup"):
        report.figure(
            f"{name} of one of {KEYS:,} rows", f"{best[name]:.0f} ns",
            f"{best['a bare hop']:.0f} ns a hop, {best['a Python dict']:.0f} in a dict",
            f"{best['a Python dict'] / best[name]:.1f}", "none", None,
        )  # fmt: skip
