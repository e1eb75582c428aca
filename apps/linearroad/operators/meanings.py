"""What the reports of a second mean, compared with the last reports of their vehicles.

These are loops without branches over few arrays, which the compiler turns into SIMD instructions.
The few reports that need more are in a list of exceptions.
"""

from __future__ import annotations

import numba
import numpy as np

from linearroad.operators.check import DIR_BITS, LANE_MASK, POS_BITS
from linearroad.schema import CROSSED, FIRST, FRESH, LANE_SHIFT, SEGMENTS, TRIGGER
from linearroad.tables.batches import (
    BEFORE_AT,
    EQUAL_AT,
    PLACE,
    SEGMENT2_AT,
    SEGMENT_AT,
    SPEED,
    SPEED2_AT,
    STANDS,
    SUMMED_AT,
)

__all__ = [
    "actions_of",
    "bits_of",
    "exceptions",
    "gains_of",
    "keys_of",
    "odd_speeds",
]

SEG_AT = SEGMENT_AT + DIR_BITS
TOGETHER = 8  # marks of exceptions that are looked at together


@numba.njit
def keys_of(where, slot):
    """The segment keys of reports."""
    keys = np.empty(len(where), np.int32)
    for i in range(len(where)):
        keys[i] = ((where[i] >> SEGMENT_AT) & 1) * SEGMENTS + (where[i] >> SEG_AT)
    for i in range(len(slot)):
        keys[i] += slot[i] * (2 * SEGMENTS)
    return keys


@numba.njit
def actions_of(where, before, same_minute):
    """What reports do; `before` is where the last ones were."""
    actions = np.empty(len(where), np.int8)
    for i in range(len(where)):
        lane = (where[i] >> POS_BITS) & LANE_MASK
        first = before[i] < 0
        moved = (before[i] >> SEG_AT) != (where[i] >> SEG_AT)
        elsewhere = (before[i] >> SEGMENT_AT) != (where[i] >> SEGMENT_AT)
        fresh = elsewhere | (not same_minute)
        actions[i] = (
            (moved & (lane != 4)) * TRIGGER
            + (moved & (not first)) * CROSSED
            + first * FIRST
            + fresh * FRESH
            + (lane << LANE_SHIFT)
        )
    return actions


@numba.njit
def gains_of(spd, actions, last_bits):
    """What reports add to the averages of their vehicles; a fresh one begins an average."""
    gains = np.empty(len(spd), np.float64)
    for i in range(len(spd)):
        speed, before = np.float64(spd[i]), np.float64(last_bits[i] & SPEED)
        gains[i] = speed if actions[i] & FRESH else (speed - before) * 0.5
    return gains


@numba.njit
def bits_of(where, spd, last, same_minute, by_speed):
    """The packed bits of reports. `by_speed`: cars with speed 0 stand, otherwise those in lanes 1
    to 3 at any speed."""
    bits = np.empty(len(where), np.int32)
    for i in range(len(where)):
        lane = (where[i] >> POS_BITS) & LANE_MASK
        first, minute = last.where[i] < 0, same_minute & (last.where[i] >= 0)
        stood = last.bits[i] & SPEED == 0
        counts = (spd[i] == 0) & stood if by_speed else (lane >= 1) & (lane <= 3)
        same = counts & (not first) & ((where[i] ^ last.where[i]) & PLACE == 0)
        equal = (last.bits[i] >> EQUAL_AT) & STANDS
        equal = min(equal + 1, STANDS) if same else 0
        speed = spd[i] if (spd[i] >= 0) & (spd[i] < SPEED) else SPEED
        of_last = (
            (1 << BEFORE_AT)
            | (last.bits[i] & SPEED) << SPEED2_AT
            | (last.where[i] >> SEGMENT_AT) << SEGMENT2_AT
            | (last.bits[i] & (1 << SUMMED_AT))
        )
        summed = (1 if first else 0) << SUMMED_AT
        bits[i] = speed | equal << EQUAL_AT | summed | (of_last if minute else 0)
    return bits


@numba.njit
def exceptions(bits, last, only_changes):
    """The indices of reports that need more than the loops above: their speeds are summed up or do
    not fit, or they are from standing cars. `only_changes`: from those that begin or cease to
    stand."""
    odd = np.zeros((len(bits) + TOGETHER - 1) // TOGETHER * TOGETHER, np.uint8)
    for i in range(len(bits)):
        stands = (bits[i] >> EQUAL_AT) & STANDS == STANDS
        stood = (last.bits[i] >> EQUAL_AT) & STANDS == STANDS
        odd[i] = (
            (stands & (not only_changes))
            | (only_changes & (stands != stood))
            | ((bits[i] >> SUMMED_AT) & 1)
            | (bits[i] & SPEED == SPEED)
            | ((bits[i] >> SPEED2_AT) & SPEED == SPEED)
        )
    listed, many = np.empty(len(odd), np.int32), 0
    words = odd.view(np.uint64)
    for word in range(len(words)):
        if words[word] != 0:
            for i in range(word * TOGETHER, (word + 1) * TOGETHER):
                listed[many] = i
                many += odd[i]
    return listed[:many]


@numba.njit
def odd_speeds(bits):
    """The number of speeds in reports that do not fit."""
    many = 0
    for i in range(len(bits)):
        many += bits[i] & SPEED == SPEED
        many += (bits[i] >> SPEED2_AT) & SPEED == SPEED
    return many
