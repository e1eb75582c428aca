"""Results in the place of inputs: only where nobody else will ever see the input again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.engine.conftest import results
from xstream.kernels._expression import is_expression

SAMPLES = np.arange(1, 41, dtype=np.float32)


@xs.kernel
def scaled(window, gain):
    return window * gain


@xs.kernel
def shifted(window, by):
    """A second expression, so that the order of stages matters."""
    return np.abs(window) + by


@xs.kernel(each=True)
def each_scaled(x, gain):
    return x * gain


@xs.kernel
def doubled(window):
    return np.multiply(window, np.float32(2))


@xs.kernel
def backwards(window):
    return window[::-1].copy()


@xs.kernel
def keep_all(window):
    return True


def allocations(stages: int, memory: str, kernel: xs.Kernel = scaled) -> int:
    q = xs.Query()
    stream = q.source(xs.io.array(SAMPLES, window=4))
    for _ in range(stages):
        stream = stream.map(kernel, np.float32(1.5))
    stream.count()
    return int(q.run(memory=memory, fuse=False).manager.stats().allocations)


@pytest.mark.parametrize("memory", ["refcount-copy", "refcount-realloc", "refcount-lazy"])
@pytest.mark.parametrize("kernel", [scaled, each_scaled], ids=lambda kernel: kernel.name)
def test_a_chain_of_expressions_allocates_once_a_window(memory: str, kernel: xs.Kernel) -> None:
    one = allocations(1, memory, kernel)
    assert allocations(6, memory, kernel) == one
    assert allocations(0, memory, kernel) == one - 10  # of ten windows


def test_a_window_that_somebody_else_has_is_not_written_to() -> None:
    """Fan-out, before and behind operators that pass a tuple on as it is."""
    q = xs.Query()
    first = q.source(xs.io.array(SAMPLES, window=4)).map(scaled, 2.0)
    passed = first.passed().filter(keep_all)
    outs = [
        passed.map(scaled, 10.0).collect(), passed.map(shifted, 1.0).collect(),
        first.collect(), first.passed().map(scaled, -1.0).collect(), passed.collect(),
    ]  # fmt: skip
    for scheduler in xs.SCHEDULER_NAMES:
        for memory in xs.MANAGER_NAMES:
            run = q.run(scheduler, memory, fuse=False)
            found = [np.concatenate([np.asarray(seg) for seg in run[out]]) for out in outs]
            for samples, expected in zip(
                found, (20 * SAMPLES, 2 * SAMPLES + 1, 2 * SAMPLES, -2 * SAMPLES, 2 * SAMPLES),
                strict=True,
            ):  # fmt: skip
                assert samples.tolist() == expected.tolist(), (scheduler, memory)


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_what_python_has_seen_does_not_change(memory: str) -> None:
    kept: list[Any] = []

    def looks(seg: xs.SigSeg) -> xs.SigSeg:
        kept.append((np.asarray(seg), seg.start))
        return seg

    q = xs.Query()
    out = q.source(xs.io.array(SAMPLES, window=4)).map(scaled, 3.0).map(looks)
    sink = out.map(scaled, 100.0).collect()
    run = q.run(memory=memory, fuse=False)
    assert len(run[sink]) == 10
    assert np.concatenate([array for array, _ in kept]).tolist() == (3 * SAMPLES).tolist()


@xs.kernel
def fails_late(window, gain):
    if window[0] > 40:
        raise ValueError("enough")
    return window


def test_an_error_behind_an_operator_that_works_in_place_names_its_own_tuple() -> None:
    q = xs.Query()
    stream = q.source(xs.io.array(SAMPLES, window=4)).map(scaled, 2.0).map(scaled, 1.0)
    stream.map(fails_late, 1).count()
    for memory in xs.MANAGER_NAMES:
        with pytest.raises(xs.OperatorError, match=r"map\(fails_late\).*\[20, 24\).*enough"):
            q.run(memory=memory, fuse=False)


STAGES = {
    "scaled": lambda stream: stream.map(scaled, 3.0),
    "shifted": lambda stream: stream.map(shifted, -7.0),
    "each": lambda stream: stream.map(each_scaled, 0.5),
    "doubled": lambda stream: stream.map(doubled),
    "backwards": lambda stream: stream.map(backwards),
    "passed": lambda stream: stream.passed(),
    "filter": lambda stream: stream.filter(keep_all),
    "rewindow": lambda stream: stream.rewindow(6, -2),
    "dewindow": lambda stream: stream.rewindow(4, -1).dewindow(),
    "python": lambda stream: stream.map(lambda seg: seg),
}


def declared(q: xs.Query, graph: list[tuple[str, int]], zipped: int) -> list[Any]:
    """A source, then stages on streams chosen among all before; every stream is collected."""
    streams = [q.source(xs.io.array(SAMPLES, window=5))]
    for stage, number in graph:
        streams.append(STAGES[stage](streams[number % len(streams)]))
    pair = streams[zipped % len(streams)].zip(streams[-1])
    names = [field.name for field in pair.schema]
    left, right = pair.select(names[0]), pair.select(names[1])
    ends = [left.map(scaled, 5.0), right.map(shifted, 5.0), pair]
    return [stream.collect() for stream in (*streams, *ends)]


@settings(deadline=None, max_examples=15)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(STAGES)), st.integers(0, 9)), min_size=1, max_size=7),
    st.integers(0, 9),
)
def test_random_graphs_give_what_copy_always_gives(graph: Any, zipped: int) -> None:
    expected = results(lambda q: declared(q, graph, zipped), "fifo", "copy-always", 1)
    for scheduler, memory, burst in (
        ("df", "refcount-lazy", 64), ("df", "refcount-copy", 1), ("df", "refcount-realloc", 64),
        ("df", "copy-always", 64), ("rtc", "refcount-lazy", 64), ("fifo", "refcount-realloc", 64),
        ("fifo-slice", "refcount-lazy", None),
    ):  # fmt: skip
        for fuse in (True, False) if scheduler == "df" else (True,):
            found = results(
                lambda q: declared(q, graph, zipped), scheduler, memory, burst, fuse=fuse
            )
            assert found == expected, (scheduler, memory, burst, fuse)


def test_only_expressions_over_samples_are_taken_for_such() -> None:
    for kernel in (scaled, shifted, doubled):
        assert is_expression(kernel.function), kernel
    for kernel in (backwards, fails_late):
        assert not is_expression(kernel.function), kernel

    def sums(window, other):  # type: ignore[no-untyped-def]
        return window @ other

    def chained(window, low, high):  # type: ignore[no-untyped-def]
        return low < window < high

    def local(window):  # type: ignore[no-untyped-def]
        twice = window * 2
        return twice + window[0]

    for function in (sums, chained, local):
        assert not is_expression(function), function


def test_expressions_keep_numbas_types_and_bits() -> None:
    from numba import njit

    @xs.kernel
    def mixed(window, gain):
        return (window * 0.1 + gain) / 3 - np.sqrt(np.abs(window)) ** 2

    for dtype in ("f4", "i2"):
        samples = np.arange(-8, 8).astype(dtype)
        expected = njit(mixed.function, error_model="numpy")(samples, np.float32(1.1))
        q = xs.Query()
        out = q.source(xs.io.array(samples)).map(mixed, np.float32(1.1)).collect()
        found = np.asarray(q.run()[out][0])
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "alone"])
def test_a_block_that_is_reused_is_nobodys(fuse: bool) -> None:
    """A sink keeps some windows, as segments and as arrays; other blocks are used again."""
    kept: dict[int, Any] = {}

    def sometimes(window: xs.SigSeg) -> None:
        if window.start % 12 == 0:
            kept[window.start] = window
        elif window.start % 20 == 0:
            kept[window.start] = np.asarray(window)

    q = xs.Query()
    stream = q.source(xs.io.array(SAMPLES, window=4)).map(scaled, np.float32(2))
    stream.map(backwards).sink(sometimes)
    run = q.run(fuse=fuse)
    assert sorted(kept) == [0, 12, 20, 24, 36]
    for start, window in kept.items():
        assert np.array_equal(np.asarray(window), 2 * SAMPLES[start : start + 4][::-1])
    manager = run.manager
    del run, q, stream, window
    kept.clear()
    assert manager.stats().live_blocks == manager.stats().live_bytes == 0


@xs.kernel(out=xs.Out("f8"))
def low_bits_apart(window, out):
    """How far results lie behind what they are made of, in the low bits of addresses."""
    out[:] = (out.ctypes.data - window.ctypes.data) & 4095


@pytest.mark.parametrize("fuse", [True, False])
def test_results_lie_away_from_the_low_bits_of_their_windows(fuse: bool) -> None:
    samples = np.zeros(1000 * 64, np.float32)
    q = xs.Query()
    out = q.source(xs.io.array(samples, window=1000)).map(low_bits_apart).collect()
    found = [np.asarray(seg)[0] for seg in q.run(fuse=fuse)[out]]
    assert len(found) == 64
    assert all(512 <= apart < 3072 for apart in found), found
