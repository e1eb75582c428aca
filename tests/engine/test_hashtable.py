"""Hash tables in the state of kernels, against dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from xstream.kernels import hashtable
from xstream.kernels._fingerprint import fingerprint
from xstream.kernels.hashtable import EMPTY, clear, entry_of, following, home, with_room

ENTRY = np.dtype([("key", "i8"), ("count", "i8")])
#: Few different keys, so that they come back, and any that an entry can hold.
KEYS = st.one_of(st.integers(0, 30), st.integers(0, 2**63 - 1), st.integers(-(2**63), EMPTY - 1))


@xs.kernel(
    state={"table": np.full(1, np.array((EMPTY, 0), ENTRY)), "used": np.zeros(1, np.int64)},
    out={"key": int, "count": int},
)
def tally(window, state, out):
    table = with_room(state.table, state.used[0] + len(window))
    for key in window:
        entry = table[entry_of(table, key)]
        if entry.key == EMPTY:
            entry.key, entry.count = key, 0
            state.used[0] += 1
        entry.count += 1
        out.emit(key, entry.count)


@given(keys=st.lists(KEYS, min_size=1, max_size=200), window=st.integers(1, 9))
@settings(deadline=None)
def test_a_table_that_grows_counts_as_a_dictionary_does(keys: list[int], window: int) -> None:
    q = xs.Query()
    stream = q.source(xs.io.array(np.array(keys, np.int64), window=window)).iterate(tally)
    counted = stream.collect()
    run = q.run()
    counts: dict[int, int] = {}
    expected = []
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
        expected.append((key, counts[key]))
    assert run[counted] == expected
    table = run.state(stream)["table"]
    kept = table[table["key"] != EMPTY]
    assert dict(zip(kept["key"].tolist(), kept["count"].tolist(), strict=True)) == counts
    assert 3 * len(kept) <= 2 * len(table)


@given(key=KEYS, size=st.integers(1, 2**31 - 1))
@settings(deadline=None)
def test_a_search_starts_and_continues_inside_the_table(key: int, size: int) -> None:
    assert 0 <= home(key, size) < size
    assert following(size - 1, size) == 0
    assert following(0, size) == (1 if size > 1 else 0)


def test_a_cleared_table_is_empty() -> None:
    table = np.zeros(5, ENTRY)
    clear(table)
    assert (table["key"] == EMPTY).all()
    assert table[entry_of(table, 3)]["key"] == EMPTY


def test_the_cached_code_of_a_kernel_depends_on_the_table_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = fingerprint(tally.function)
    assert fingerprint(tally.function) == before
    monkeypatch.setattr(hashtable, "home", following)
    assert fingerprint(tally.function) != before
