"""join against a slow one with lists: keys of any order and spacing, alone and in batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.reference import placement
from xstream.ops.join import Join
from xstream.testing import list_source, run_operator

#: Evenly spaced keys from some start, arbitrary ones, and ones that all share their last bits.
spacings = st.one_of(
    st.tuples(st.integers(-(2**61), 2**61), st.sampled_from([1, 3, 1000, 44_100, 2**20, 2**40])),
    st.just((None, 0)),
    st.just((0, 1 << 52)),
)


@st.composite
def sides(draw: st.DrawFn) -> list[list[int]]:
    """The keys of both sides: in order, late, missing, repeated."""
    start, step = draw(spacings)
    far = st.integers(-(2**63), 2**63 - 1)
    pool = draw(st.lists(far, min_size=1, max_size=200)) if start is None else None
    return [
        [
            pool[number % len(pool)] if pool else start + step * number
            for number in draw(numbers(draw(st.integers(0, 250))))
        ]
        for _ in range(2)
    ]


def numbers(count: int) -> st.SearchStrategy[list[int]]:
    """Positions: ascending, shuffled a little, sparse, or with repetitions."""
    return st.one_of(
        st.just(list(range(count))),
        st.randoms(use_true_random=False).map(
            lambda random: sorted(range(count), key=lambda i: i + random.uniform(0, 20))
        ),
        st.randoms(use_true_random=False).map(
            lambda random: [i for i in range(count) if random.random() < 0.5]
        ),
        st.lists(st.integers(0, 12), max_size=60),
    )


ROW = {"index": int, "value": float}


@xs.kernel(out=ROW)
def key_of(index, value, keys):
    return keys[index], value


@xs.kernel(out=ROW)
def numbered(index, value):
    return index, value + 1.0


def in_bursts(left: list[Any], right: list[Any], burst: int) -> list[tuple[int, Any]]:
    """The order in which a run admits the tuples of two sources."""
    found = []
    for at in range(0, max(len(left), len(right)), burst):
        found += [(0, row) for row in left[at : at + burst]]
        found += [(1, row) for row in right[at : at + burst]]
    return found


def rows_of(keys: list[int], first: float) -> list[tuple[int, float]]:
    return [(key, first + number) for number, key in enumerate(keys)]


@settings(max_examples=25, deadline=None)
@given(sides(), st.booleans(), st.sampled_from([1, 7, 64]), st.booleans())
def test_batches_join_in_the_order_of_single_tuples(
    keys: list[list[int]], unique: bool, burst: int, fuse: bool
) -> None:
    q = xs.Query()
    left, right = (
        q.source(xs.io.samples(np.arange(len(side)) + 1000.0 * number))
        .map(key_of, np.array([*side, 0], np.int64))
        .map(numbered)
        for number, side in enumerate(keys)
    )
    out = left.join(right, unique=unique).collect()
    found = q.run(tuple_burst=burst, fuse=fuse)[out]
    arrivals = in_bursts(rows_of(keys[0], 1.0), rows_of(keys[1], 1001.0), burst)
    assert found == placement.symmetric_join(arrivals, unique)


@settings(max_examples=25, deadline=None)
@given(sides(), st.integers(1, 5), st.integers(1, 3))
def test_every_scheduler_finds_the_same_pairs(
    keys: list[list[int]], left_fields: int, right_fields: int
) -> None:
    inputs = [
        [(key, *range(number, number + fields)) for number, key in enumerate(side)]
        for side, fields in zip(keys, (left_fields, right_fields), strict=True)
    ]
    wanted = placement.join(*inputs)
    for scheduler in xs.SCHEDULER_NAMES:
        sources = [
            list_source(rows, tuple([int] * (1 + fields)))
            for rows, fields in zip(inputs, (left_fields, right_fields), strict=True)
        ]
        assert sorted(run_operator(Join(), *sources, scheduler=scheduler)) == wanted, scheduler


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("unique", [False, True])
def test_a_source_that_feeds_a_join_and_others(unique: bool, threads: int) -> None:
    values = np.arange(3_000) * 0.5
    q = xs.Query()
    a, b = (q.source(xs.io.samples(values + number)) for number in range(2))
    first, joined = a.collect(), a.join(b, unique=unique).collect()
    run = q.run(threads=threads)
    assert run[first] == list(enumerate(values))
    assert run[joined] == [(time, x, x + 1) for time, x in enumerate(values)]


@pytest.mark.parametrize("unique", [False, True])
def test_a_stream_joined_with_itself_meets_each_tuple_at_once(unique: bool) -> None:
    keys = [3, 3, 1, 3, 2, 1] * 30
    q = xs.Query()
    rows = (
        q.source(xs.io.samples(np.arange(float(len(keys)))))
        .map(key_of, np.array(keys))
        .map(numbered)
    )
    out = rows.join(rows, unique=unique).collect()
    arrivals = [(side, row) for row in rows_of(keys, 1.0) for side in (0, 1)]
    assert q.run()[out] == placement.symmetric_join(arrivals, unique)


@pytest.mark.parametrize("first", [0, 1])
def test_tuples_of_a_join_and_of_its_source_are_merged_in_order(first: int) -> None:
    """The source's batches do not overtake what the join makes of them."""

    def merged(batches: bool) -> Any:
        q = xs.Query()
        sources: list[Any] = [None, None]
        for number in (first, 1 - first):  # the first one is admitted first
            values = np.arange(300.0 - 100 * number)
            sources[number] = q.source(
                xs.io.samples(values)
                if batches
                else xs.io.iterable([(int(x), x) for x in values], out=ROW)
            )
        a, b = sources
        out = a.merge(a.join(b, unique=True).select("index", "value")).collect()
        return q.run()[out]

    assert merged(batches=True) == merged(batches=False)
