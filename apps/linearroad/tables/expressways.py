"""Numbers for expressways: slots, in the order in which they first appear."""

from __future__ import annotations

import numba

import xstream as xs

__all__ = ["add_xway", "mark_xways", "slot_of"]


@xs.compiled
def mark_xways(seen, xway):
    """Mark expressways as seen; how many were not before. Those with equal marks count as one."""
    new, mask = 0, len(seen) - 1
    for i in range(len(xway)):
        at = xway[i] & mask
        if xway[i] >= 0 and seen[at] == 0:
            seen[at] = 1
            new += 1
    return new


@numba.njit
def slot_of(keys, slots, xway):
    """The slot of an expressway, or -1 where it has none yet."""
    mask = len(keys) - 1
    at = (xway * 2654435761 >> 8) & mask
    while keys[at] != -1:
        if keys[at] == xway:
            return slots[at]
        at = (at + 1) & mask
    return -1


@numba.njit
def put_slot(keys, slots, xway, slot):
    """Enter an expressway that is not there."""
    mask = len(keys) - 1
    at = (xway * 2654435761 >> 8) & mask
    while keys[at] != -1:
        at = (at + 1) & mask
    keys[at], slots[at] = xway, slot


@numba.njit
def add_xway(keys, slots, slot, xway):
    """Give an expressway a slot; the table, at most half full, as it is now."""
    size = len(keys)
    if 2 * (slot + 1) > size:
        old_keys, old_slots = keys.copy(), slots.copy()
        keys, slots = xs.grow(keys, 2 * size), xs.grow(slots, 2 * size)
        keys[:] = -1
        for i in range(size):
            if old_keys[i] != -1:
                put_slot(keys, slots, old_keys[i], old_slots[i])
    put_slot(keys, slots, xway, slot)
    return keys, slots
