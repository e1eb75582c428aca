"""More input than a query can take: memory stays, and lateness is told as it is."""

from __future__ import annotations

import pytest

from bench.overload import overloaded


@pytest.mark.slow
def test_overload_takes_no_memory_and_is_not_hidden() -> None:
    found = overloaded(4.0)
    before, most = found.memory
    assert most <= 1.1 * before
    assert found.is_honest
    assert found.lateness_s[0] > 0.3 * found.elapsed_s  # it was an overload
