"""Hash tables in the state arrays of kernels: open addressing with linear probing.

A table is an array of records with an integer field `key`, of any length; EMPTY marks a free entry.
There is always at least one, where a search ends. Tables that are laid out differently (`batches`,
`road`, `accidents`) say why, and use `home` and `following`.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs

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
    table = xs.grow(table, max(2 * len(old), 3 * entries // 2 + 1))
    clear(table)
    for i in range(len(old)):
        if old[i].key != EMPTY:
            table[entry_of(table, old[i].key)] = old[i]
    return table
