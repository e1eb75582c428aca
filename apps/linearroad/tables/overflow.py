"""Numbers that do not fit into the narrow fields of other tables, in a hash table.

A field has a value that stands for all numbers beyond its range; these are here, by the index of
the field. They are rare: an entry stays until another number replaces it.
"""

from __future__ import annotations

import numba
import numpy as np

from xstream.kernels.hashtable import EMPTY, entry_of

__all__ = ["NO_OVERFLOW", "keep_wide", "wide_number"]

WIDE = np.dtype([("key", "i8"), ("value", "i8")])
#: An empty table, as a kernel starts with it.
NO_OVERFLOW = np.full(4, np.array((EMPTY, 0), WIDE))


@numba.njit
def keep_wide(wide, key, value):
    """Keep a number; returns 1 if its entry is new. There is room for it."""
    entry = wide[entry_of(wide, key)]
    new = entry.key == EMPTY
    entry.key, entry.value = key, value
    return 1 if new else 0


@numba.njit
def wide_number(wide, key):
    """The number of a field that cannot hold it."""
    return wide[entry_of(wide, key)].value
