"""The answers that a service keeps: the last ones, at least as many bytes as it is told."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from linearroad.operators.answers import BATCH
from linearroad.service.recent import NAMES, RecentAnswers

SIZES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 200)), max_size=30)


def columns(begin: int, count: int) -> tuple[np.ndarray, ...]:
    return tuple(np.arange(begin, begin + count, dtype=BATCH[name].dtype) for name in NAMES)


@given(SIZES, st.integers(1, 500), st.booleans())
def test_the_last_bytes_are_kept_also_in_a_checkpoint(
    sizes: list[tuple[int, int]], most: int, saved: bool
) -> None:
    recent, sent = RecentAnswers(keeps=True, most_bytes=most), 0
    bytes_behind: dict[int, int] = {0: 0}  # by the number of answers before them
    for count, size in sizes:
        recent.add(columns(sent, count), size)
        bytes_behind = {number: size + behind for number, behind in bytes_behind.items()}
        sent += count
        bytes_behind.setdefault(sent, 0)
    if saved:
        state = recent.save_state()
        recent = RecentAnswers(keeps=True, most_bytes=most)
        recent.load_state(state)
    assert recent.sent == sent
    assert all(recent.first <= number for number, behind in bytes_behind.items() if behind < most)
    for number in range(recent.first, sent + 1):
        again = list(recent.behind(number))
        for place in range(len(NAMES)):
            found = [int(value) % 128 for part in again for value in part[place]]
            assert found == [value % 128 for value in range(number, sent)]


def test_answers_are_copied_and_none_are_kept_without_checkpoints() -> None:
    given_columns = columns(0, 3)
    kept, counted = RecentAnswers(keeps=True), RecentAnswers(keeps=False)
    for recent in (kept, counted):
        recent.add(given_columns, 10)
    given_columns[0][:] = 9
    assert [part[0].tolist() for part in kept.behind(1)] == [[1, 2]]
    assert (counted.first, counted.sent, list(counted.behind(3))) == (3, 3, [])
