"""Merging by a field orders tuples as sorting does; channels hand them to another thread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs

FIELDS = {"time": int, "x": xs.Segment(np.int32)}
ASCENDING = st.lists(st.integers(-50, 50), max_size=12, unique=True).map(sorted)
STREAMS = st.lists(ASCENDING, min_size=1, max_size=5)


def source(query: xs.Query, times: list[int], number: int) -> xs.Stream:
    def tuples():  # type: ignore[no-untyped-def]
        for time in times:
            yield time, xs.SigSeg(np.array([number, time], np.int32))

    return query.source(xs.io.iterable(tuples, out=FIELDS))


@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
@given(streams=STREAMS, burst=st.sampled_from([1, 3, None]))
@settings(deadline=None, max_examples=25)
def test_streams_are_merged_in_the_order_of_the_field(
    scheduler: str, streams: list[list[int]], burst: int | None
) -> None:
    query = xs.Query()
    sources = [source(query, times, number) for number, times in enumerate(streams)]
    merged = sources[0].merge(*sources[1:], by="time", tag="stream").collect()
    manager = xs.memory_manager("refcount-lazy")
    run = query.run(scheduler, manager, burst)
    found = [(time, stream, np.asarray(x).tolist()) for stream, time, x in run[merged]]
    expected = sorted((t, number) for number, times in enumerate(streams) for t in times)
    assert found == [(t, number, [number, t]) for t, number in expected]
    del run
    assert manager.stats().live_blocks == 0


def test_a_value_is_emitted_as_soon_as_all_streams_have_reached_it() -> None:
    query, seen = xs.Query(), []

    def slow():  # type: ignore[no-untyped-def]
        for time in (1, 2, 3):
            seen.append(("given", time))
            yield time, 0

    def fast():  # type: ignore[no-untyped-def]
        yield from ((time, 1) for time in (1, 2, 3))

    fields = {"time": int, "stream": int}
    first = query.source(xs.io.iterable(fast, out=fields))
    second = query.source(xs.io.iterable(slow, out=fields))
    first.merge(second, by="time").sink(lambda time, stream: seen.append((stream, time)))
    query.run(tuple_burst=1)
    assert seen == [
        item for time in (1, 2, 3) for item in (("given", time), (1, time), (0, time))
    ]  # fmt: skip


def test_a_stream_that_does_not_ascend_is_named() -> None:
    query = xs.Query()
    sources = [source(query, [1, 2], 0), source(query, [5, 5], 1)]
    sources[0].merge(*sources[1:], by="time").count()
    with pytest.raises(xs.OperatorError, match="a tuple with 5 came behind one with 5"):
        query.run()


def test_what_cannot_be_merged_is_refused() -> None:
    query = xs.Query()
    one = source(query, [1], 0)
    with pytest.raises(xs.SchemaError, match="by='x' is not an integer field"):
        one.merge(by="x")
    with pytest.raises(xs.SchemaError, match="by='y' is not an integer field"):
        one.merge(by="y")
    with pytest.raises(xs.GraphError, match="tag requires by"):
        one.merge(tag="stream")
