"""Chains of kernels compiled into one function: the same results, statistics, states and errors."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import xstream as xs
from tests.engine import kernels
from tests.engine.conftest import plain
from xstream.fusion import MAX_MEMBERS, Regions, chains

SAMPLES = np.random.default_rng(11).normal(size=333).astype(np.float32)


@xs.kernel(each=True)
def gain(x, factor):
    return x * factor + 0.25


@xs.kernel(each=True)
def rooted(x):
    if x < 0:
        raise ValueError("no root of what is negative")
    return np.sqrt(x)


@xs.kernel(each=True, state=np.zeros(1, np.float32))
def smoothed(x, state):
    state[0] = 0.5 * (state[0] + x)
    return state[0]


@xs.kernel(each=True)
def sum_and_flag(x):
    return x + x, x > 0


@xs.kernel(each=True)
def chosen(f0, f1, other):
    return f0 if f1 else other


@xs.kernel
def backwards(window):
    return window[::-1]


@xs.kernel(out=xs.Out("f4", rate=2))
def doubled_rate(window, out):
    for i in range(len(window)):
        out[2 * i] = window[i]
        out[2 * i + 1] = -window[i]


@xs.kernel(
    state={"n": np.zeros(1, np.int64), "kept": np.zeros(1)},
    out={"start": int, "kept": xs.Out("f4", start="running"), "level": np.float32},
    at_end=True,
)
def in_parts(window, state, out):
    """Parts of a window, and at the end how many windows there were."""
    if out.ended:
        out.emit(-1, state.kept[: state.n[0]], float(state.n[0]))
        return
    kept = xs.grow(state.kept, state.n[0] + 1)
    kept[state.n[0]] = window[0]
    state.n[0] += 1
    out.emit(out.start, window[:2], window[0])
    if window[0] > 0:
        out.emit(out.start + 2, window[2:], 0.1)


@xs.kernel
def measured(kept, level, start):
    return start, len(kept) * level


@xs.kernel(out={"start": int, "x": xs.Out("f4", start="given")})
def moved(window, out):
    for k in range(2):
        out.emit_at(out.start - 7 * k, k, window)


@xs.kernel(state=np.zeros(1), at_end=True)
def running_sum(start, value, state):
    state[0] += value
    return state[0], start


def source(q: xs.Query, **options: Any) -> Any:
    return q.source(xs.io.array(SAMPLES, rate_hz=50.0, window=16, **options))


def outcome(declare: Any, **options: Any) -> tuple[list[Any], dict[str, Any]]:
    """Results and statistics of a run; nothing may be left behind."""
    q = xs.Query()
    sinks = declare(q)
    run = q.run(**options)
    stats = {name: (s.tuples, s.samples, s.emitted) for name, s in run.stats.items()}
    found = [plain(run[sink]) for sink in sinks]
    manager = run.manager
    del run
    gc.collect(0)
    assert (manager.stats().live_blocks, manager.stats().live_segments) == (0, 0)
    return found, stats


def regions_of(declare: Any) -> list[int]:
    q = xs.Query()
    declare(q)
    return [len(chain) for chain in chains(q)]


QUERIES = {
    "loops over samples": lambda q: [
        source(q).map(gain, 0.5).map(gain, 2.0).map(smoothed).map(gain, 0.1).collect()
    ],
    "several fields a sample": lambda q: [
        source(q).map(sum_and_flag).map(chosen, 0.7).map(gain, 3.0).mean().collect()
    ],
    "a loop before a filter": lambda q: [source(q).map(gain, 1.5).std_above(1.2).collect()],
    "filters only": lambda q: [
        source(q).filter(kernels.louder, 0.9).passed().filter(kernels.louder, 1.0).collect()
    ],
    "arrays between": lambda q: [
        source(q).map(kernels.doubled).map(backwards).map(doubled_rate).fir([0.5, 0.25]).collect()
    ],
    "emits": lambda q: [source(q).iterate(in_parts).map(measured).map(running_sum).collect()],
    "emits into filters": lambda q: [
        source(q).map(gain, 1.0).iterate(moved).select("x").std_above(0.8).mean().collect()
    ],
    "sample by sample": lambda q: [
        q.source(xs.io.samples(SAMPLES))
        .iterate(kernels.twice_or_not)
        .filter(kernels.above_zero)
        .map(kernels.negative)
        .iterate(kernels.sum_at_end)
        .collect()
    ],
    "one kernel many times": lambda q: [
        q.source(xs.io.samples(SAMPLES, repeat=3))
        .iterate(kernels.twice_or_not)
        .iterate(kernels.twice_or_not)
        .iterate(kernels.twice_or_not)
        .collect()
    ],
    "forwarded numbers": lambda q: [
        q.source(xs.io.samples(SAMPLES, repeat=2))
        .filter(kernels.above_zero)
        .filter(kernels.above_zero)
        .collect()
    ],
    "counted": lambda q: [
        q.source(xs.io.samples(SAMPLES)).iterate(kernels.twice_or_not).count(),
        source(q).stats().select("mean", "start").count(),
    ],
    "fields that come back": lambda q: [
        source(q)
        .map(kernels.mean_and_ends)
        .select("f3", "f0", "f2")
        .filter(kernels.positive_mean)
        .select("f2", "f3")
        .collect()
    ],
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_results_and_statistics_are_those_of_single_operators(name: str, memory: str) -> None:
    declare = QUERIES[name]
    assert max(regions_of(declare)) >= 2
    for burst in (64, None):
        options = {"memory": memory, "tuple_burst": burst}
        assert outcome(declare, **options) == outcome(declare, fuse=False, **options)


def test_an_emptied_stream_and_null_segments() -> None:
    def declare(q: xs.Query) -> Any:
        nulls = q.source(
            xs.io.iterable(lambda: [xs.SigSeg.null(dtype="f4")] * 3, out=xs.Segment("f4"))
        )
        none = source(q).filter(kernels.louder, 1e9).map(gain, 1.0).map(kernels.doubled)
        return [nulls.map(gain, 2.0).map(kernels.doubled).map(gain, 1.0).collect(), none.collect()]

    assert outcome(declare) == outcome(declare, fuse=False)
    assert outcome(declare)[0] == [[(0, [])] * 3, []]


def test_states_are_read_and_given_inside_a_region() -> None:
    q = xs.Query()
    parts = source(q).iterate(in_parts)
    sums = parts.map(measured).map(running_sum)
    out = sums.collect()
    assert [len(chain) for chain in chains(q)] == [3]
    alone, fused = q.run(fuse=False), q.run()
    for stream in (parts, sums):
        for name, array in alone.state(stream).items():
            assert fused.state(stream)[name].tolist() == array.tolist()
    state = {parts: fused.state(parts), sums: fused.state(sums)}
    assert q.run(state=state)[out] == q.run(state=state, fuse=False)[out]
    assert q.run(state=state)[out] != fused[out]


@xs.kernel(state=np.zeros(1, np.int64))
def fails_later(start, value, state):
    state[0] += 1
    if state[0] == 9:
        raise ValueError("nine is one too many")
    return start, value


def message(declare: Any, **options: Any) -> str:
    with pytest.raises(xs.OperatorError) as caught:
        outcome(declare, **options)
    text = str(caught.value)
    del caught
    gc.collect()
    return text


FAILING = {
    "in the middle": lambda q: [
        source(q).iterate(in_parts).map(measured).map(fails_later).map(running_sum).collect()
    ],
    "in front": lambda q: [source(q).filter(kernels.fails_at_five).map(gain, 1.0).collect()],
    "behind an array": lambda q: [
        source(q).map(kernels.doubled).map(backwards).filter(kernels.fails_at_five).collect()
    ],
    "in a loop": lambda q: [source(q).map(gain, 0.9).map(rooted).map(gain, 1.0).collect()],
    "outside the indices": lambda q: [
        source(q).map(kernels.doubled).iterate(too_far).map(kernels.doubled).collect()
    ],
    "behind the region": lambda q: [
        source(q).map(gain, 0.9).map(kernels.doubled).map(_unhappy, out=float).collect()
    ],
    "at the end": lambda q: [source(q).map(kernels.doubled).iterate(fails_at_end).mean().collect()],
}


@xs.kernel(out=xs.Out("f4", start="given"))
def too_far(window, out):
    out.emit_at(2**62 - 3, window)


@xs.kernel(out=xs.Out("f4"), at_end=True)
def fails_at_end(window, out):
    if out.ended:
        raise ValueError("too late")
    out.emit(window)


def _unhappy(seg: xs.SigSeg) -> float:
    raise ValueError(f"not {seg.start}")


@pytest.mark.parametrize("name", FAILING)
def test_errors_name_operator_and_tuple_as_they_do_alone(name: str) -> None:
    alone = message(FAILING[name], fuse=False)
    assert message(FAILING[name]) == alone
    assert "\n" not in alone


@xs.kernel(state=np.zeros(16, np.float32), out=xs.Out("f4"))
def reuses_what_it_emitted(window, state, out):
    state[: len(window)] = window
    out.emit(state[: len(window)])
    state[:] = 1.0


@xs.kernel(state=np.zeros(100_000, np.float32), out=xs.Out("f4"))
def outgrows_what_it_emitted(window, state, out):
    state[:] = -1.0
    out.emit(state)
    xs.grow(state, 10 * len(state))


@xs.kernel
def large(window):
    return np.full(9_000_000, -1.0, np.float32)


@pytest.mark.parametrize("first", [reuses_what_it_emitted, outgrows_what_it_emitted, large])
def test_the_tuple_of_an_error_outlives_the_array_that_it_came_from(first: Any) -> None:
    """Loops are run again with the tuple; the large arrays are unmapped when they are freed."""

    def declare(q: xs.Query) -> list[Any]:
        start = source(q).map(first) if first is large else source(q).iterate(first)
        return [start.map(rooted).map(gain, 1.0).collect()]

    assert regions_of(declare) == [3]
    alone = message(declare, fuse=False)
    assert "map(rooted), port 'in'" in alone
    assert message(declare) == alone


@xs.kernel(out=(int, xs.Out("f4"), xs.Out("f4")))
def number_and_arrays(window, out):
    out.emit(len(window), window * 2, window - 1)


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_the_tuple_of_an_error_has_all_of_its_fields_and_is_released(memory: str) -> None:
    def failing(number, f1, f2):
        if f1[0] == 64.0:
            raise ValueError("32 is one too many")
        return f2

    def declare(q: xs.Query) -> list[Any]:
        ramp = q.source(xs.io.array(np.arange(64, dtype=np.float32), window=16))
        return [ramp.iterate(number_and_arrays).map(xs.kernel(failing)).collect()]

    alone = message(declare, fuse=False, memory=memory)
    assert "(16, <SigSeg 16 samples [32, 48)" in alone
    manager = xs.memory_manager(memory)
    assert message(declare, memory=manager) == alone
    assert (manager.stats().live_blocks, manager.stats().live_segments) == (0, 0)


@njit
def _emit_twice(out, value):
    out.emit(value)
    out.emit(-value)


@xs.kernel(out=float)
def by_helper(value, out):
    _emit_twice(out, value)


def test_kernels_that_numba_cannot_compile_together_run_alone() -> None:
    """It takes a helper that two of them give their `out` to for a recursion."""

    def declare(q: xs.Query) -> Any:
        numbers = q.source(xs.io.iterable([1.0, 2.0], out=float))
        return [numbers.iterate(by_helper).iterate(by_helper).iterate(by_helper).collect()]

    assert outcome(declare) == outcome(declare, fuse=False)


def test_regions_end_where_streams_divide_and_meet() -> None:
    q = xs.Query()
    src = source(q)
    trunk = src.map(gain, 1.0).map(gain, 2.0)
    left, right = trunk.map(gain, 3.0).map(kernels.doubled), trunk.map(gain, 4.0)
    left.zip(right).select("value1").mean().count()
    names = [[q.nodes[node].name for node in chain] for chain in chains(q)]
    assert names == [
        ["map(gain)", "map(gain) 2"],
        ["map(gain) 3", "map(doubled)"],
        ["select(value1)", "mean", "count"],
    ]


def test_the_picture_shows_regions() -> None:
    q = xs.Query()
    src = source(q)
    src.map(gain, 1.0).map(gain, 2.0).mean().collect()
    src.map(gain, 3.0).collect()
    picture = q.to_dot()
    assert picture.count("subgraph cluster_") == 1
    assert "n1; n2; n3;" in picture


def test_long_chains_are_divided() -> None:
    def declare(q: xs.Query) -> Any:
        stream = source(q)
        for i in range(3 * MAX_MEMBERS + 1):
            stream = stream.map(gain, 1.0 if i % 2 else -1.0)
        return [stream.collect()]

    assert regions_of(declare) == [MAX_MEMBERS] * 3
    assert outcome(declare) == outcome(declare, fuse=False)


def test_what_is_not_fused() -> None:
    def declare(q: xs.Query) -> Any:
        return [source(q).map(gain, 1.0).map(kernels.doubled).map(gain, 2.0).collect()]

    whole = outcome(declare)[0]
    for options in (
        {"profile": True}, {"debug": True}, {"scheduler": "fifo"}, {"memory": "copy-always"}
    ):  # fmt: skip
        assert outcome(declare, **options)[0] == whole
    q = xs.Query()
    declare(q)
    copies = q.run(memory="copy-always").memory.bytes_copied
    assert copies == q.run(memory="copy-always", fuse=False).memory.bytes_copied > 0
    # Loops over samples overwrite their input, so that neither way needs memory in between.
    assert q.run().memory.allocations == q.run(fuse=False).memory.allocations


@xs.kernel(state={"held": np.zeros(64), "count": np.zeros(1, np.int64)}, out=float)
def by_sixty_four(value, state, out):
    """Large enough that LLVM would not inline it if others could call it."""
    state.held[state.count[0]] = value
    state.count[0] += 1
    if state.count[0] == len(state.held):
        state.count[0] = 0
        order = np.sort(state.held)
        for i in range(len(order)):
            out.emit(order[i] - order[0] if i % 2 else order[i] / (1.0 + abs(order[-1])))


def test_kernels_with_state_are_inlined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XSTREAM_CACHE_DIR", str(tmp_path))  # code from the cache has no source
    values = np.random.default_rng(3).normal(size=640)
    q = xs.Query()
    stream = q.source(xs.io.iterable(values.tolist(), out=float))
    out = stream.iterate(by_sixty_four).iterate(by_sixty_four).collect()
    (chain,) = chains(q)
    (code,) = Regions(q, [chain]).codes
    callback, _ = code.keep_alive
    assert "by_sixty_four" not in "".join(
        line for line in callback._library.get_llvm_str().splitlines() if "call " in line
    )
    assert q.run()[out] == q.run(fuse=False)[out]
