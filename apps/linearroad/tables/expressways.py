"""Slots: expressways are numbered in the order in which they first appear."""

from __future__ import annotations

import numba
import numpy as np

from xstream.kernels.hashtable import EMPTY, entry_of, with_room

__all__ = ["XWAYS", "slot_of"]

XWAY = np.dtype([("key", "i8"), ("slot", "i8")])
#: An empty table, as a kernel starts with it.
XWAYS = np.full(16, np.array((EMPTY, 0), XWAY))


@numba.njit
def slot_of(xways, slots, xway):
    """The slot of an expressway, and the table. A new one gets the next slot, `slots`."""
    at = entry_of(xways, xway)
    if xways[at].key == EMPTY:
        xways = with_room(xways, slots + 1)
        at = entry_of(xways, xway)
        xways[at].key, xways[at].slot = xway, slots
    return xways[at].slot, xways
