"""What kernels keep can be had from one run and given to another, which goes on from there."""

from __future__ import annotations

import numpy as np
import pytest

import xstream as xs
from xstream.errors import GraphError, KernelError, XStreamError


@xs.kernel(
    state={"seen": np.zeros(1, np.int64), "kept": np.zeros(2, np.float32)},
    out=xs.Out(np.dtype("float32"), start="given"),
)
def keep_all(window, state, out):  # type: ignore[no-untyped-def]
    """Keeps every sample, in an array that grows, and yields all of them."""
    begin = state.seen[0]
    kept = xs.grow(state.kept, begin + len(window))
    kept[begin : begin + len(window)] = window
    state.seen[0] = begin + len(window)
    out.emit_at(0, kept[: state.seen[0]])


def query_over(samples: np.ndarray) -> tuple[xs.Query, xs.SinkRef]:
    query = xs.Query()
    source = query.source(xs.io.array(samples, rate_hz=1.0, window=64))
    return query, source.iterate(keep_all, name="kept").collect()


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
@pytest.mark.parametrize("cut", [64, 40_000 // 64 * 64])
def test_a_run_goes_on_from_the_state_of_another(memory: str, cut: int) -> None:
    samples = np.arange(64_000, dtype=np.float32)
    whole, out = query_over(samples)
    expected = np.asarray(whole.run(memory=memory)[out][-1])
    first, _ = query_over(samples[:cut])
    state = first.run(memory=memory).state("kept")
    second, out = query_over(samples[cut:])
    again = second.run(memory=memory, state={"kept": state})
    np.testing.assert_array_equal(np.asarray(again[out][-1]), expected)
    assert again.state("kept")["seen"].tolist() == [64_000]
    assert state["seen"].tolist() == [cut]  # a copy: the second run has not touched it


def test_a_state_outlives_its_run() -> None:
    query, _ = query_over(np.ones(100_032, np.float32))
    state = query.run().state("kept")
    assert state["kept"][:100_032].sum() == 100_032


PAIR = np.dtype([("value", "f4"), ("count", "i8")], align=True)


@xs.kernel(
    state={"pair": np.zeros(1000, PAIR)},
    out=xs.Out(np.dtype("int64"), start="given"),
)
def count_values(window, state, out):  # type: ignore[no-untyped-def]
    """Counts samples by value, with a look ahead that goes outside the array as well."""
    counts = np.empty(len(window), np.int64)
    for i in range(len(window)):
        xs.prefetch(state.pair, int(window[i]))
        xs.prefetch(state.pair, -1)
        xs.prefetch(window, 2**40)
    for i in range(len(window)):
        pair = state.pair[int(window[i])]
        pair.value = window[i]
        pair.count += 1
        counts[i] = pair.count
    out.emit_at(0, counts)


def test_a_look_ahead_changes_nothing_wherever_it_goes() -> None:
    samples = np.random.default_rng(1).integers(0, 1000, 6400).astype(np.float32)
    query = xs.Query()
    source = query.source(xs.io.array(samples, rate_hz=1.0, window=64))
    source.iterate(count_values, name="counts").count()
    pair = query.run().state("counts")["pair"]
    np.testing.assert_array_equal(pair["count"], np.bincount(samples.astype(int), minlength=1000))
    assert (pair["value"] == np.where(pair["count"] > 0, np.arange(1000), 0)).all()
    assert xs.prefetch(samples, 0) is None  # outside kernels it is nothing at all


@pytest.mark.parametrize(
    ("state", "kind", "sentence"),
    [
        ({"nobody": {}}, GraphError, "'nobody' is no operator of"),
        ({"rows": {}}, GraphError, "rows is not a kernel"),
        ({"kept": {"seen": np.zeros(1, np.int64)}}, KernelError, "keeps seen, kept, and is given"),
        (
            {"kept": {"seen": np.zeros(1, np.int32), "kept": np.zeros(2, np.float32)}},
            KernelError,
            "state 'seen' is one row of int64, not 1 dimensions of int32",
        ),
    ],
)
def test_a_state_that_does_not_fit_is_refused(
    state: dict[str, dict[str, np.ndarray]], kind: type[XStreamError], sentence: str
) -> None:
    query = xs.Query()
    source = query.source(xs.io.array(np.ones(8, np.float32), rate_hz=1.0, window=4), name="rows")
    source.iterate(keep_all, name="kept").count()
    with pytest.raises(kind, match=sentence):
        query.run(state=state)


def test_only_kernels_keep_a_state_that_can_be_had() -> None:
    query = xs.Query()
    source = query.source(xs.io.array(np.ones(8), rate_hz=1.0, window=4), name="rows")
    source.rewindow(2, name="pairs").count()
    run = query.run()
    with pytest.raises(GraphError, match="pairs is not a kernel"):
        run.state("pairs")
    with pytest.raises(GraphError, match="'nobody' is no operator"):
        run.state("nobody")
