"""The laws that `SigSeg`'s docstring states, under every manager and for every kind of dtype."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

import xstream as xs
from tests.sigseg.samples import ALL_DTYPES, cuts_of, numbered, pieced, shown

memories = st.sampled_from(xs.MANAGER_NAMES)
dtypes = st.sampled_from(ALL_DTYPES)
starts = st.integers(-(2**40), 2**40)
widths = st.integers(0, 200)
TB = xs.Timebase(rate_hz=44_100.0, start_time=3.5)


@st.composite
def segments(draw: st.DrawFn, count: int) -> list[xs.SigSeg]:
    """`count` neighbours of one signal, each in pieces of its own."""
    memory, dtype, start = xs.memory_manager(draw(memories)), draw(dtypes), draw(starts)
    neighbours = []
    for _ in range(count):
        width = draw(widths)
        samples = numbered(width, dtype, draw(st.integers(0, 100)))
        neighbours.append(pieced(samples, draw(cuts_of(width, 12)), start, TB, memory))
        start += width
    return neighbours


@given(segments(3))
def test_append_is_associative(abc: list[xs.SigSeg]) -> None:
    a, b, c = abc
    left, right = a.append(b).append(c), a.append(b.append(c))
    assert left == right
    assert np.array_equal(shown(left), np.concatenate([shown(a), shown(b), shown(c)]))


@given(segments(1))
def test_null_is_the_unit_of_append(one: list[xs.SigSeg]) -> None:
    (a,) = one
    null = xs.SigSeg.null(TB, a.dtype, a.manager)
    assert null.append(a) == a == a.append(null)
    assert (null.append(a).start, a.append(null).start) == (a.start, a.start) or not a.width
    assert null.append(null) == null


@given(segments(2), st.data())
def test_cutting_distributes_over_joining(ab: list[xs.SigSeg], data: st.DataObject) -> None:
    a, b = ab
    joined = a.append(b)
    first = data.draw(st.integers(a.start, b.stop))
    stop = data.draw(st.integers(first, b.stop))
    assume(joined.width)
    of_a = a.subseg(min(first, a.stop), max(min(stop, a.stop) - first, 0)) if a.width else a
    begin = max(first, b.start)
    of_b = b.subseg(min(begin, b.stop), max(stop - begin, 0)) if b.width else b
    assert joined.subseg(first, stop - first) == of_a.append(of_b)


@given(segments(1), st.data())
def test_cutting_a_cut_is_cutting_once(one: list[xs.SigSeg], data: st.DataObject) -> None:
    (a,) = one
    first = data.draw(st.integers(a.start, a.stop))
    outer = a.subseg(first, data.draw(st.integers(0, a.stop - first)))
    second = data.draw(st.integers(outer.start, outer.stop))
    width = data.draw(st.integers(0, outer.stop - second))
    assert outer.subseg(second, width) == a.subseg(second, width)


@given(st.data(), dtypes, widths)
def test_content_is_independent_of_pieces_and_manager(
    data: st.DataObject, dtype: np.dtype[Any], width: int
) -> None:
    samples = numbered(width, dtype)
    one = pieced(samples, data.draw(cuts_of(width)), 7, TB, data.draw(memories))
    two = pieced(samples, data.draw(cuts_of(width)), 7, TB, data.draw(memories))
    assert one == two
    assert np.array_equal(np.asarray(one), samples)
    assert np.array_equal(shown(two), samples)
    if width:
        position = data.draw(st.integers(-width, width - 1))
        assert one[position] == two[position] == samples[position]
        changed = samples.copy()
        changed[position] = numbered(1, dtype, position % width + 1)[0]
        assert one != xs.SigSeg(changed, 7, TB)


@given(segments(1), st.data())
def test_slices_are_those_of_an_array(one: list[xs.SigSeg], data: st.DataObject) -> None:
    (a,) = one
    key = data.draw(st.slices(a.width).filter(lambda key: key.step in (None, 1)))
    assert np.array_equal(shown(a[key]), shown(a)[key])
    assert [*a][key] == [*a[key]]


@given(segments(2))
def test_no_operation_changes_an_existing_segment(ab: list[xs.SigSeg]) -> None:
    a, b = ab
    before_a, before_b = shown(a).copy(), shown(b).copy()
    grown = a.append(b)
    for _ in range(3):
        grown.append(pieced(numbered(9, a.dtype), [3, 5], grown.stop, TB, a.manager))
    with a.edit() as e:
        e.array[...] = np.zeros(1, a.dtype)
    np.asarray(grown)
    assert np.array_equal(shown(a), before_a)
    assert np.array_equal(shown(b), before_b)
    assert np.array_equal(shown(grown), np.concatenate([before_a, before_b]))


@given(
    rate_hz=st.floats(1e-3, 1e6),
    start_time=st.floats(-1e6, 1e6),
    index=st.integers(-(10**9), 10**9),
)
@settings(max_examples=400)
def test_time_and_index_are_inverse(rate_hz: float, start_time: float, index: int) -> None:
    timebase = xs.Timebase(rate_hz, start_time)
    time = timebase.time_of(index)
    # Where a float cannot tell neighbouring samples apart, no function of the time can.
    assume(timebase.time_of(index - 1) < time < timebase.time_of(index + 1))
    seg = xs.SigSeg(np.zeros(3, np.int8), start=index, timebase=timebase)
    assert seg.index_at(seg.time_of(index)) == index
    halfway = time + (timebase.time_of(index + 1) - time) / 2
    assert seg.index_at(halfway) == index or halfway >= timebase.time_of(index + 1)


@given(
    rate_hz=st.floats(1e-300, 1e300),
    start_time=st.floats(allow_nan=False, allow_infinity=False),
    time=st.floats(allow_nan=False, allow_infinity=False),
)
@settings(max_examples=400)
def test_index_at_is_the_last_sample_at_or_before(
    rate_hz: float, start_time: float, time: float
) -> None:
    """Also where floats are much coarser than the rate; far beyond any index it says so."""
    timebase = xs.Timebase(rate_hz, start_time)
    if not timebase.time_of(-(2**62)) <= time < timebase.time_of(2**62):
        with pytest.raises(xs.TimebaseError, match=r"^no sample is at time"):
            timebase.index_at(time)
        return
    index = timebase.index_at(time)
    assert timebase.time_of(index) <= time < timebase.time_of(index + 1)


@given(segments(2), st.integers(-50, 50).filter(bool))
def test_appending_across_a_gap_or_an_overlap_names_both_sides(
    ab: list[xs.SigSeg], distance: int
) -> None:
    a, b = ab
    assume(a.width and b.width)
    moved = pieced(shown(b), [], b.start + distance, TB, a.manager)
    with pytest.raises(xs.NotAdjacentError) as caught:
        a.append(moved)
    message = str(caught.value)
    assert f"[{a.start}, {a.stop})" in message
    assert f"[{moved.start}, {moved.stop})" in message
    assert f"{'a gap' if distance > 0 else 'an overlap'} of {abs(distance)} samples" in message
