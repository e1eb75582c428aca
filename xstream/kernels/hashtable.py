"""Hash tables in the state arrays of kernels: open addressing with linear probing.

A table is an array of records with an integer field `key`, of any length; EMPTY marks a free entry.
There is always at least one, where a search ends. An array that is laid out differently can be
searched with `home` and `following`.

>>> import numpy as np, xstream as xs
>>> from xstream.kernels.hashtable import EMPTY, entry_of, with_room
>>> ENTRY = np.dtype([("key", "i8"), ("count", "i8")])
>>> empty = np.full(4, np.array((EMPTY, 0), ENTRY))
>>> state = {"table": empty, "used": np.zeros(1, np.int64)}
>>> @xs.kernel(state=state, out={"key": int, "count": int})
... def tally(window, state, out):
...     table = with_room(state.table, state.used[0] + len(window))
...     for key in window:
...         entry = table[entry_of(table, key)]
...         if entry.key == EMPTY:
...             entry.key, entry.count = key, 0
...             state.used[0] += 1
...         entry.count += 1
...         out.emit(key, entry.count)
>>> q = xs.Query()
>>> samples = np.array([70, 5, 70, 70], np.int32)
>>> counted = q.source(xs.io.array(samples, window=2)).iterate(tally).collect()
>>> q.run()[counted]
[(70, 1), (5, 1), (70, 2), (70, 3)]
"""

from __future__ import annotations

import numba
import numpy as np

from xstream.kernels._numba import grow

__all__ = ["EMPTY", "clear", "entry_of", "following", "home", "with_room"]

EMPTY = -1


@numba.njit(inline="always")
def home(key, size):
    """The index at which the search for a key starts."""
    mixed = np.int64(key) * -7046029254386353131
    return (((mixed >> 32) & 0xFFFFFFFF) * size) >> 32


@numba.njit(inline="always")
def following(at, size):
    """The index to try next."""
    return at + 1 if at + 1 < size else 0


@numba.njit(inline="always")
def entry_of(table, key):
    """The index of a key's entry, or of the empty entry where it would be."""
    size = len(table)
    at = home(key, size)
    while table[at].key != EMPTY and table[at].key != key:
        at = following(at, size)
    return at


@numba.njit
def clear(table):
    """Make all entries empty."""
    for i in range(len(table)):
        table[i].key = EMPTY


@numba.njit
def with_room(table, entries):
    """The table, at most two thirds full with `entries` entries. It may have moved."""
    if 3 * entries <= 2 * len(table):
        return table
    old = table.copy()
    table = grow(table, max(2 * len(old), 3 * entries // 2 + 1))
    clear(table)
    for i in range(len(old)):
        if old[i].key != EMPTY:
            table[entry_of(table, old[i].key)] = old[i]
    return table
