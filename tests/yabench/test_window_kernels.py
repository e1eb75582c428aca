"""xstream's window operators report what a slow replay of the stream reports, by every policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from yabench.columns import Columns, compare
from yabench.engines.window_kernels import CLOSE, NEW, WHOLE, averaged, paired, selected

import xstream as xs
from tests.reference import yabench as slow

KINDS = {"time": "int64", "observation": "int64", "station": "int64", "value": "float64"}
LEVEL = 2.0
Item = tuple[int, int, int, float]
Rows = Counter[tuple[float, ...]]


@st.composite
def streams(draw: st.DrawFn) -> list[Item]:
    """Items in order of time: time, observation, station, value."""
    found = draw(
        st.lists(
            st.tuples(st.integers(0, 60), st.integers(0, 2), st.sampled_from([1.0, 3.0, 4.0, 5.5])),
            min_size=1,
            max_size=25,
        )
    )
    return [(t, o, s, v) for o, (t, s, v) in enumerate(sorted(found, key=lambda each: each[0]))]


def reports(items: list[Item], cuts: list[int], kernel: Any, *arguments: Any) -> list[Any]:
    """Run a kernel over the items in batches; return the time and the rows of each report."""
    places = sorted({0, len(items), *(cut for cut in cuts if cut < len(items))})
    # Items of one time are fed together.
    places = [p for p in places if p in (0, len(items)) or items[p - 1][0] < items[p][0]]
    columns = [np.array(column, kind) for column, kind in zip(zip(*items), KINDS.values())]  # noqa: B905

    def batches() -> Any:
        for begin, end in pairwise(places):
            yield tuple(xs.SigSeg(column[begin:end]) for column in columns)

    found: list[Any] = []

    def take(end: int, *parts: xs.SigSeg) -> None:
        rows = zip(*(np.asarray(part).tolist() for part in parts), strict=True)
        found.append((end, Counter(tuple(map(float, row)) for row in rows)))

    query = xs.Query()
    schema = {name: xs.Segment(kind) for name, kind in KINDS.items()}
    query.source(xs.io.iterable(batches, out=schema)).iterate(kernel, *arguments).sink(take)
    query.run(tuple_burst=1)
    return found


def select(content: list[Item]) -> list[tuple[float, ...]]:
    return [(s, o) for _, o, s, v in content if v > LEVEL]


def pairs(content: list[Item]) -> list[tuple[float, ...]]:
    return [
        (s1, o1, v1, o2)
        for _, o1, s1, v1 in content for _, o2, s2, v2 in content
        if s1 == s2 and v1 > v2 > LEVEL
    ]  # fmt: skip


def average(content: list[Item]) -> list[tuple[float, ...]]:
    hot = [v for *_, v in content if v > LEVEL]
    return [(0.0, sum(hot) / len(hot) if hot else 0.0)]


def average_by_sensor(content: list[Item]) -> list[tuple[float, ...]]:
    groups: dict[int, list[float]] = {}
    for _, _, s, v in content:
        if v > LEVEL:
            groups.setdefault(s, []).append(v)
    return [(s, sum(values) / len(values)) for s, values in groups.items()]


def replayed(
    items: list[Item], answer: Callable[..., Any], size: int, slide: int, policy: int
) -> list[tuple[int, Rows]]:
    """Move through the stream time by time, and report as the policy says."""
    end = (items[-1][0] + size) // slide * slide
    if policy == CLOSE:
        scopes = [slow.scope_of(i, size, slide) for i in range(1, end // slide + 1)]
        return [(b, _rows(answer, items, a, b)) for a, b in scopes]
    found, before, last = [], [], Counter()
    for time in range(end):
        start = max(0, (time // slide + 1) * slide - size)
        now = [item for item in items if start <= item[0] <= time]
        if now == before:
            continue
        whole = _rows(answer, now, 0, time + 1)
        kept = Counter(answer([item for item in before if item[0] >= start]))
        known = kept if answer in (select, pairs) else last
        found.append((time, whole if policy == WHOLE else whole - known))
        before, last = now, whole
    return found


def _rows(answer: Callable[..., Any], items: list[Item], start: int, end: int) -> Rows:
    rows = answer([item for item in items if start <= item[0] < end])
    return Counter(tuple(map(float, row)) for row in rows)


CASES = [
    (select, selected, ()), (pairs, paired, ()), (average, averaged, (False,)),
    (average_by_sensor, averaged, (True,)),
]  # fmt: skip


@pytest.mark.parametrize("policy", [CLOSE, NEW, WHOLE])
@pytest.mark.parametrize(("answer", "kernel", "more"), CASES)
@settings(max_examples=12, deadline=None)
@given(streams(), st.integers(1, 15), st.integers(1, 15), st.lists(st.integers(1, 25), max_size=6))
def test_reports_are_those_of_a_slow_replay(
    answer: Any,
    kernel: Any,
    more: tuple[Any, ...],
    policy: int,
    items: list[Item],
    size: int,
    slide: int,
    cuts: list[int],
) -> None:
    assume(policy == CLOSE or slide <= size)  # an item between two windows changes none
    found = reports(items, cuts, kernel, LEVEL, *more, size, slide, policy)
    expected = replayed(items, answer, size, slide, policy)
    if policy != CLOSE:  # a report without bindings says nothing
        found, expected = ([each for each in side if each[1]] for side in (found, expected))
    assert found == expected


def test_rows_that_left_are_dropped_and_pairs_stay_right() -> None:
    """More rows than are moved to the front at once, so that their places change."""
    items = [(t, t, t % 7, 3.0 + t % 5) for t in range(20_000)]
    found = reports(items, list(range(0, 20_000, 500)), paired, LEVEL, 60, 30, CLOSE)
    for end, rows in found[:: len(found) // 20]:
        content = [item for item in items if end - 60 <= item[0] < end]
        assert rows == Counter(tuple(map(float, row)) for row in pairs(content))


KEYED = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([1.0, 1.0 + 5e-10, 2.0])), max_size=6)


@given(KEYED, KEYED)
def test_columns_are_compared_as_multisets(one: list[Any], two: list[Any]) -> None:
    sides = [
        Columns(
            {"k": np.array([k for k, _ in rows], np.int64), "v": np.array([v for _, v in rows])}
        )
        for rows in (one, two)
    ]
    found = compare(*sides)
    keys = [[k for k, _ in rows] for rows in (one, two)]
    unique = all(len(set(side)) == len(side) > 0 for side in keys)
    assert (found is not None) == unique
    if found is not None:
        rows = [[{"k": k, "v": v} for k, v in side] for side in (one, two)]
        right = slow.precision_recall(*rows)
        assert (found.score.precision, found.score.recall) == tuple(map(float, right))
        assert (found.score.actual, found.score.expected) == (len(two), len(one))
        assert bool(found.missing) == (right[1] < 1)
        assert bool(found.unexpected) == (right[0] < 1)
