"""Two tables about vehicles: those on the road, and the speeds of irregular ones in this minute.

A vehicle that reports regularly is found in the batch of 30 seconds ago. For all others the table
of vehicles on the road says in which second they were last seen: it maps a vehicle to its phase,
the second modulo 30, which changes only when a trip starts or ends.

A regular vehicle reports twice a minute, and its last report contains the one before. Where that is
not enough (in the minute in which a trip starts, and for vehicles that come back) speeds are summed
up by vehicle and segment. The sums are dropped at the end of the minute.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from xstream.kernels.hashtable import EMPTY, entry_of, following, home

__all__ = ["PHASES", "SUM", "add_speed", "forget", "larger_road", "phase_of", "set_phase"]

#: An entry of the road's table is `vehicle * PHASES + phase`: one word per vehicle, where records
#: with a key would take two. The table is the largest of all, and the only one with deletions.
PHASES = 32

#: The speeds of a vehicle in a segment (`key`) in this minute: 64 times their sum plus the number
#: of reports, which is at most 60, one per second.
SUM = np.dtype([("key", "i8"), ("tally", "i8")])
TALLY_BITS = 6


@numba.njit(inline="always")
def place_of(road, vehicle):
    """The index of a vehicle's entry, or of the empty entry where it would be."""
    size = len(road)
    at = home(vehicle, size)
    while road[at] != EMPTY and road[at] // PHASES != vehicle:
        at = following(at, size)
    return at


@numba.njit
def phase_of(road, vehicle):
    """The phase of a vehicle on the road, or -1."""
    at = place_of(road, vehicle)
    return road[at] % PHASES if road[at] != EMPTY else -1


@numba.njit
def set_phase(road, vehicle, phase):
    """Set the phase of a vehicle; returns 1 if it is new, else 0. Needs an empty entry."""
    at = place_of(road, vehicle)
    new = road[at] == EMPTY
    road[at] = vehicle * PHASES + phase
    return 1 if new else 0


@numba.njit
def forget(road, vehicle):
    """Remove a vehicle. Entries behind it move up, so that no tombstones are needed."""
    size = len(road)
    hole = place_of(road, vehicle)
    if road[hole] == EMPTY:
        return
    at = following(hole, size)
    while road[at] != EMPTY:
        wants = home(road[at] // PHASES, size)
        # It may move to the hole, unless its home lies behind the hole (cyclically).
        if (at - wants + size) % size >= (at - hole + size) % size:
            road[hole] = road[at]
            hole = at
        at = following(at, size)
    road[hole] = EMPTY


@numba.njit
def larger_road(road):
    """The table with an eighth more room. It is searched only when trips start or end, so that it
    may be rather full."""
    old = road.copy()
    road = xs.grow(road, len(old) * 9 // 8)
    road[:] = EMPTY
    for i in range(len(old)):
        if old[i] != EMPTY:
            road[place_of(road, old[i] // PHASES)] = old[i]
    return road


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
