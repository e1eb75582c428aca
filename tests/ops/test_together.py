"""zip, union, select and join: streams put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.reference import placement
from xstream.ops.basic import Merge, Pass
from xstream.ops.join import Join
from xstream.ops.select import Select
from xstream.ops.union import Union
from xstream.ops.zip import Zip
from xstream.testing import list_source, run_operator, streams

numbers = st.lists(st.integers(-(2**60), 2**60), max_size=30)


@settings(max_examples=15)
@given(numbers, st.lists(st.floats(allow_nan=False), max_size=30), numbers)
def test_zip_pairs_in_order_and_drops_what_is_left(
    everywhere: Callable[..., Any], a: list[int], b: list[float], c: list[int]
) -> None:
    inputs = [list_source(a, int), list_source(b, float), list_source(c, int)]
    assert everywhere(Zip(), *inputs) == list(zip(a, b, c, strict=False))


@settings(max_examples=15)
@given(streams(), streams((np.int16,)))
def test_zip_carries_segments_and_leaks_none(
    everywhere: Callable[..., Any], a: list[xs.SigSeg], b: list[xs.SigSeg]
) -> None:
    tuples = everywhere(Zip(), a, b)
    assert len(tuples) == min(len(a), len(b))
    for (x, y), p, q in zip(tuples, a, b, strict=False):
        assert (x.start, y.start) == (p.start, q.start)
        assert x.samples.tobytes() == np.asarray(p).tobytes()
        assert y.samples.tobytes() == np.asarray(q).tobytes()


def test_zip_with_a_slow_partner_keeps_thousands(everywhere: Callable[..., Any]) -> None:
    assert everywhere(Zip(), list(range(3_000)), [7]) == [(0, 7)]


@settings(max_examples=15)
@given(numbers, numbers)
def test_union_tags_every_tuple_with_its_stream(
    everywhere: Callable[..., Any], a: list[int], b: list[int]
) -> None:
    tuples = everywhere(Union(), list_source(a, int), list_source(b, int), ordered=False)
    assert [value for stream, value in tuples if stream == 0] == a
    assert [value for stream, value in tuples if stream == 1] == b


@settings(max_examples=10)
@given(numbers, numbers)
def test_merge_and_pass_hand_everything_on(
    everywhere: Callable[..., Any], a: list[int], b: list[int]
) -> None:
    merged = everywhere(Merge(), list_source(a, int), list_source(b, int), ordered=False)
    assert sorted(merged) == sorted(a + b)
    assert everywhere(Pass(), list_source(a, int)) == a


def test_names_are_made_unique() -> None:
    q = xs.Query()
    a, b, c = (q.source(xs.io.array(np.zeros(4))) for _ in range(3))
    assert [field.name for field in a.zip(b, c).schema] == ["value", "value1", "value2"]
    assert [field.name for field in a.union(b).schema] == ["stream", "value"]
    assert [field.name for field in a.zip(b).zip(a.zip(c)).schema] == [
        "value", "value1", "value2", "value11",
    ]  # fmt: skip


def test_union_and_merge_refuse_streams_that_differ() -> None:
    with pytest.raises(xs.SchemaError, match="union, port 'in1': carries float64, and port 'in'"):
        run_operator(Union(), [1], [0.5])


@settings(max_examples=10)
@given(streams())
def test_select_takes_fields_in_any_order(
    everywhere: Callable[..., Any], a: list[xs.SigSeg]
) -> None:
    rows = [(number, seg, number / 2) for number, seg in enumerate(a)]
    swapped = everywhere(Select(("f2", "f0")), rows)
    assert swapped == [(number / 2, number) for number, _, _ in rows]
    only = everywhere(Select(("f1", "f1")[:1]), rows)
    assert [segment.start for segment in only] == [segment.start for segment in a]


def test_select_names_the_field_that_is_missing() -> None:
    with pytest.raises(xs.SchemaError, match=r"there is no field 'z' among f0, f1"):
        run_operator(Select(("z",)), [(1, 2)])


rows_with_keys = st.lists(st.tuples(st.integers(-5, 12), st.integers(0, 100)), max_size=25)


@settings(max_examples=20)
@given(rows_with_keys, rows_with_keys)
def test_join_finds_every_pair_with_one_key(
    everywhere: Callable[..., Any], left: list[Any], right: list[Any]
) -> None:
    schema = {"time": int, "x": int}
    joined = everywhere(
        Join(), list_source(left, schema), list_source(right, schema), ordered=False
    )
    assert sorted(joined) == placement.join(left, right)


@settings(max_examples=15)
@given(st.permutations(range(40)), st.integers(0, 40))
def test_join_of_unique_keys_meets_each_once(
    everywhere: Callable[..., Any], order: list[int], many: int
) -> None:
    left = [(key, -key) for key in range(many)]
    right = [(key, key * 2) for key in order]
    schema = {"time": int, "x": int}
    joined = everywhere(
        Join(unique=True), list_source(left, schema), list_source(right, schema), ordered=False
    )
    assert sorted(joined) == placement.join(left, right)


@settings(max_examples=8)
@given(streams(), st.booleans())
def test_join_carries_segments_and_leaks_none(
    everywhere: Callable[..., Any], a: list[xs.SigSeg], unique: bool
) -> None:
    left = [(seg.start, seg) for seg in a if seg.width]
    right = [(seg.start, seg.width) for seg in reversed(a) if seg.width]
    with_segment = list_source(left, (int, xs.Segment(np.float32)))
    joined = everywhere(Join(unique=unique), with_segment, list_source(right, (int, int)),
                        ordered=False)  # fmt: skip
    found = sorted((key, placed.samples.tolist(), width) for key, placed, width in joined)
    assert found == [(seg.start, np.asarray(seg).tolist(), seg.width) for seg in a if seg.width]


def test_join_grows_to_many_keys_and_forgets_unique_ones() -> None:
    keys = list(range(0, 50_000, 7))
    for unique in (False, True):
        joined = run_operator(Join(unique=unique), [(k, 1) for k in keys], [(k, 2) for k in keys])
        assert len(joined) == len(keys)


def test_join_of_unique_keys_does_not_grow_with_the_stream() -> None:
    def row(segment: xs.SigSeg) -> tuple[int, xs.SigSeg]:
        return segment.start, xs.SigSeg(np.asarray(segment) + 1.0, segment.start)

    peaks = []
    for repeat in (10, 100):
        q = xs.Query()
        src = q.source(xs.io.array(np.zeros(100), window=50, repeat=repeat))
        rows = src.map(row, out=(int, xs.Segment(np.float64)))
        rows.join(rows, unique=True).count()
        peaks.append(q.run().memory.peak_bytes)
    assert peaks[1] <= peaks[0] * 1.5


def test_join_needs_a_whole_number_to_join_on() -> None:
    with pytest.raises(xs.SchemaError, match="join, port 'right': needs a whole number as first"):
        run_operator(Join(), [(1, 2)], [(0.5, 2)])
    with pytest.raises(xs.SchemaError, match="port 'left': needs a whole number as field 'k'"):
        run_operator(Join(on="k"), [(1, 2)], [(1, 2)])
