"""Speeds that the packed reports do not hold.

A regular vehicle reports twice a minute, and its last report contains the one before. Where that is
not enough (in the minute in which a trip starts, and for vehicles that come back) speeds are summed
up by vehicle and segment. The sums are dropped at the end of the minute.

Speeds outside of the range that a report has bits for are in a table (`tables.overflow`) by twice
the index of the report; plus 1: the speed of the report before.
"""

from __future__ import annotations

import numba
import numpy as np

from linearroad.tables.batches import SPEED, SPEED2_AT
from linearroad.tables.overflow import wide_number
from xstream.kernels.hashtable import EMPTY, entry_of

__all__ = ["SUM", "add_speed", "fits", "speed_before", "speed_of"]

#: The speeds of a vehicle in a segment (`key`) in this minute: 64 times their sum plus the number
#: of reports, which is at most 60, one per second.
SUM = np.dtype([("key", "i8"), ("tally", "i8")])
TALLY_BITS = 6


@numba.njit(inline="always")
def average(tally):
    """The average speed of a tally."""
    return (tally >> TALLY_BITS) / (tally & ((1 << TALLY_BITS) - 1))


@numba.njit
def add_speed(sums, vid, segment, spd):
    """Count a report. Returns what it adds to the average of its vehicle, and 1 if that is new."""
    key = np.int64(vid) + (np.int64(segment) << 32)
    entry, more = sums[entry_of(sums, key)], (np.int64(spd) << TALLY_BITS) + 1
    if entry.key == EMPTY:
        entry.key, entry.tally = key, more
        return np.float64(spd), 1
    before = entry.tally
    entry.tally = before + more
    return average(entry.tally) - average(before), 0


@numba.njit(inline="always")
def fits(speed):
    """Whether a speed fits into a report; the largest value of the field says that it does not."""
    return 0 <= speed < SPEED


@numba.njit
def speed_of(bits, odd, k):
    """The speed of report `k`."""
    speed = np.int64(bits[k] & SPEED)
    return speed if fits(speed) else wide_number(odd, 2 * k)


@numba.njit
def speed_before(bits, odd, k):
    """The speed of the report before report `k`."""
    speed = np.int64((bits[k] >> SPEED2_AT) & SPEED)
    return speed if fits(speed) else wide_number(odd, 2 * k + 1)
