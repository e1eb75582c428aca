"""The search for the largest L, with halves below the base and copies above it."""

from __future__ import annotations

import pytest
from linearroad.peers.search import confirmed, largest


def rounded(rated: float) -> float:
    """What can be tried with a base of ten expressways."""
    return rated // 10 * 10 if rated >= 10 else max(int(2 * rated) / 2, 0.5)


@pytest.mark.parametrize("first", [0.5, 2.0, 10.0, 40.0, 500.0])
@pytest.mark.parametrize("limit", [0.4, 0.5, 1.0, 3.5, 9.5, 10.0, 37.0, 120.0, 1000.0, 5000.0])
def test_the_largest_l_that_passes_is_found_within_a_tenth(first: float, limit: float) -> None:
    asked: list[float] = []

    def probe(rated: float) -> bool:
        asked.append(rated)
        return rated <= limit

    found = largest(probe, rounded, first, 1000.0)
    assert len(asked) == len(set(asked)), "no L is tried twice"
    assert all(rounded(rated) == rated for rated in asked)
    if limit < 0.5:
        assert found == 0
        return
    best = rounded(min(limit, 1000.0))
    assert found in asked
    assert found <= best <= max(1.1 * found, found + (10 if found >= 10 else 0.5))
    if found < best:  # what was left out is within the precision
        assert best - found <= 0.1 * found


@pytest.mark.parametrize("first", [0.5, 4.5, 40.0, 500.0])
@pytest.mark.parametrize("limit", [0.4, 0.5, 3.5, 9.5, 37.0, 120.0, 1000.0])
def test_the_first_l_is_confirmed_or_lowered_until_one_passes(first: float, limit: float) -> None:
    asked: list[float] = []

    def probe(rated: float) -> bool:
        asked.append(rated)
        return rated <= limit

    found = confirmed(probe, rounded, first)
    assert asked[0] == first
    assert asked == sorted(set(asked), reverse=True)
    assert found == (asked[-1] if asked[-1] <= limit else 0.0)
    assert found > 0 or limit < 0.5
    if found and found < first:  # the next larger one that was tried did not pass
        assert asked[-2] > limit
        assert asked[-2] - found <= 0.1 * asked[-2] + (10 if asked[-2] > 10 else 0.5)
