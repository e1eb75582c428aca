"""Random graphs give the same results under every scheduler and manager, fused or not, and on any
number of threads."""

from __future__ import annotations

import gc
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.engine import kernels
from tests.engine.conftest import plain


@xs.kernel(each=True)
def scaled(x, factor):
    return x * factor - 0.125


@xs.kernel(each=True, state=np.zeros(1, np.float32))
def leaky(x, state):
    state[0] = 0.75 * state[0] + x
    return state[0]


@xs.kernel
def mirrored(window):
    return window[::-1]


@xs.kernel(state={"n": np.zeros(1, np.int64), "last": np.zeros(2)}, out=xs.Out("f4"), at_end=True)
def every_third(window, state, out):
    """Drops every third window, doubles every fourth, and ends with what it has kept."""
    if out.ended:
        out.emit(state.last)
        return
    state.n[0] += 1
    if len(window):
        last = xs.grow(state.last, 2 + state.n[0] % 3)
        last[-1] = window[0]
    if state.n[0] % 3:
        out.emit(window)
    if state.n[0] % 4 == 0:
        out.emit(window[1:])


@xs.kernel(out=xs.Out("f4", start="running"), pieces=True)
def in_halves(window, out):
    """Emits both halves of a window of several pieces, added up with less and less weight."""
    half = len(window) // 2
    for first in (0, half):
        part = window.part(first, len(window) - half)
        added = np.empty(len(part), np.float32)
        last = np.float32(0.0)
        for i in range(len(part)):
            last = np.float32(0.5) * last + part[i]
            added[i] = last
        out.emit(added)


@xs.kernel
def sum_of_both(value, value1):
    return value[:1] + value1[:1]


@xs.kernel
def first_sample(window):
    return (window[0] if len(window) else np.float32(0.0)), 0


#: What a stream of float32 segments can go through and still be one.
STEPS = {
    "scaled": lambda s: s.map(scaled, 0.5),
    "scaled again": lambda s: s.map(scaled, -1.5),
    "leaky": lambda s: s.map(leaky),
    "mirrored": lambda s: s.map(mirrored),
    "louder": lambda s: s.filter(kernels.louder, 0.6),
    "std_above": lambda s: s.std_above(0.3),
    "doubled": lambda s: s.map(kernels.doubled),
    "every third": lambda s: s.iterate(every_third),
    "passed": lambda s: s.passed(),
    "in halves": lambda s: s.iterate(in_halves),
}
chains = st.lists(st.sampled_from(sorted(STEPS)), max_size=5)
#: A trunk, two branches of it, whether they meet again, and how often numbers go round a cycle.
graphs = st.tuples(chains, chains, chains, st.booleans(), st.integers(0, 3))
SAMPLES = np.random.default_rng(8).normal(size=150).astype(np.float32)


def along(stream: xs.Stream, steps: list[str]) -> xs.Stream:
    for step in steps:
        stream = STEPS[step](stream)
    return stream


def declared(q: xs.Query, graph: Any) -> tuple[list[Any], list[Any]]:
    """Sinks whose order is the same everywhere, and sinks whose order is not."""
    trunk_steps, left_steps, right_steps, meet, rounds = graph
    blocks = q.source(xs.io.array(SAMPLES, window=8, repeat=2)).map(scaled, 1.0)
    trunk = along(blocks.rewindow(6), trunk_steps)  # windows of several pieces
    left, right = along(trunk, left_steps), along(trunk, right_steps)
    ordered = [left.collect(), right.map(scaled, 2.0).mean().collect()]
    if meet:
        ordered.append(left.zip(right).map(sum_of_both).collect())
    numbers = right.map(first_sample)
    back = q.feedback(numbers.schema)
    around = numbers.merge(back)
    q.connect(back, around.filter(kernels.hops_left, rounds).map(kernels.one_more))
    return ordered, [around.collect(), around.map(kernels.halve).filter(kernels.above, 0.0).count()]


def outcome(graph: Any, **options: Any) -> tuple[Any, Any, dict[str, Any]]:
    q = xs.Query()
    ordered, unordered = declared(q, graph)
    run = q.run(**options)
    found = [plain(run[sink]) for sink in ordered]
    mixed = [sorted(rows) if isinstance(rows := plain(run[s]), list) else rows for s in unordered]
    stats = {name: (s.tuples, s.samples, s.emitted) for name, s in run.stats.items()}
    manager = run.manager
    del run
    gc.collect(0)
    assert (manager.stats().live_blocks, manager.stats().live_segments) == (0, 0), options
    return repr(found), repr(mixed), stats  # as text: NaN equals itself


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(graph=graphs)
def test_random_graphs(graph: Any) -> None:
    check(graph)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(graph=graphs)
def test_many_random_graphs(graph: Any) -> None:
    check(graph)


def check(graph: Any) -> None:
    first = outcome(graph, fuse=False)
    for scheduler, memory in product(xs.SCHEDULER_NAMES, xs.MANAGER_NAMES):
        for fuse in (False, True) if scheduler == "df" else (True,):
            options = {"scheduler": scheduler, "memory": memory, "fuse": fuse}
            assert outcome(graph, **options) == first, options
    for memory, fuse, threads in product(xs.MANAGER_NAMES, (False, True), (2, 3)):
        options = {"memory": memory, "fuse": fuse, "threads": threads}
        assert outcome(graph, **options) == first, options
    assert outcome(graph, tuple_burst=1) == outcome(graph, tuple_burst=None) == first
