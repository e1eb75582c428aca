"""The search finds the largest L that passes with as few runs as possible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linearroad.rating.search import Range, largest


@given(
    step=st.integers(1, 20),
    first=st.integers(1, 3000),
    last=st.integers(1, 6000),
    limit=st.integers(0, 7000),
    known_to=st.sampled_from([0.0, 0.05, 0.3]),
)
def test_what_is_found_passes_and_what_is_a_little_larger_does_not(
    step: int, first: int, last: int, limit: int, known_to: float
) -> None:
    last = max(last // step, 1) * step
    tried = Range(step, min(first, last), last, known_to)
    asked: list[int] = []

    def probe(expressways: int) -> bool:
        asked.append(expressways)
        return expressways <= limit

    found = largest(probe, tried)
    assert all(expressways % step == 0 and 0 < expressways <= last for expressways in asked)
    assert len(asked) == len(set(asked))  # none is run twice
    assert len(asked) < 40
    if found:
        assert found in asked
        assert found <= limit
        larger = found + max(step, known_to * found) + step
        assert found == last or larger > limit
    else:
        assert limit < step
        assert min(asked) == step


@pytest.mark.parametrize(("limit", "found"), [(5000, 5000), (4, 0), (10, 10)])
def test_both_ends_are_tried(limit: int, found: int) -> None:
    assert largest(lambda expressways: expressways <= limit, Range(10, 100, 5000)) == found
