"""Two tables about vehicles: who is on the road, and what irregular ones did this minute.

A vehicle that reports regularly is found in the batch of 30 seconds ago. Where it is not there,
`Road` says in which other second it was last seen, if any: a hash of every vehicle on the road to
its phase, the seconds modulo 30, which changes only when a trip starts or ends.

A regular vehicle reports twice a minute, and its last report knows the one before. What cannot be
told so (the minutes in which trips start, and those of vehicles that come back) is summed up here
by vehicle and segment, and forgotten with the minute.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs

__all__ = ["add_speed", "forget", "known_phase", "larger_minute", "larger_road", "set_phase"]

PHASES = 32  # bits for a phase beside the slot

#: A vehicle's speeds in a segment in this minute: 64 times their sum, and how many reports there
#: were (at most 60, one a second); 0: nobody.
SUM = np.dtype([("vid", "i4"), ("key", "i4"), ("tally", "i8")], align=True)
TALLY_BITS = 6


@numba.njit(inline="always")
def home(vid, slot, size):
    """Where a vehicle belongs in a table of any size."""
    mixed = (np.int64(vid) + (np.int64(slot) << 32)) * -7046029254386353131
    return (((mixed >> 32) & 0xFFFFFFFF) * size) >> 32


@numba.njit
def entry_of(vids, phases, vid, slot):
    """Where a vehicle's entry is, or the empty one where it would be."""
    size = len(vids)
    at = home(vid, slot, size)
    while vids[at] != -1 and not (vids[at] == vid and phases[at] // PHASES == slot):
        at += 1
        if at == size:
            at = 0
    return at


@numba.njit
def known_phase(vids, phases, vid, slot):
    """The phase of a vehicle on the road, or -1."""
    at = entry_of(vids, phases, vid, slot)
    return phases[at] % PHASES if vids[at] != -1 else -1


@numba.njit
def set_phase(vids, phases, vid, slot, phase):
    """Enter a vehicle, or its new phase; how many entries there are more. Needs an empty entry."""
    at = entry_of(vids, phases, vid, slot)
    new = vids[at] == -1
    vids[at], phases[at] = vid, slot * PHASES + phase
    return 1 if new else 0


@numba.njit
def forget(vids, phases, vid, slot):
    """Take a vehicle out; those behind it move up, so that no entry is ever dead."""
    size = len(vids)
    hole = entry_of(vids, phases, vid, slot)
    if vids[hole] == -1:
        return
    at = hole
    while True:
        at = at + 1 if at + 1 < size else 0
        if vids[at] == -1:
            break
        wants = home(vids[at], phases[at] // PHASES, size)
        # May it move to the hole? Not when its home lies behind the hole (cyclically).
        if (at - wants + size) % size >= (at - hole + size) % size:
            vids[hole], phases[hole] = vids[at], phases[at]
            hole = at
    vids[hole] = -1


@numba.njit
def larger_road(vids, phases):
    """The road's table with an eighth as much room again: it is looked into only when trips start
    or end, so it may be rather full."""
    old_vids, old_phases = vids.copy(), phases.copy()
    size = len(vids) * 9 // 8
    vids, phases = xs.grow(vids, size), xs.grow(phases, size)
    vids[:] = -1
    for i in range(len(old_vids)):
        if old_vids[i] != -1:
            at = entry_of(vids, phases, old_vids[i], old_phases[i] // PHASES)
            vids[at], phases[at] = old_vids[i], old_phases[i]
    return vids, phases


@numba.njit
def sum_of(sums, vid, key):
    """Where the sum of a vehicle in a segment is, or would be."""
    mask = len(sums) - 1
    at = (((np.int64(vid) + (np.int64(key) << 32)) * -7046029254386353131) >> 33) & mask
    while sums[at].tally != 0 and not (sums[at].vid == vid and sums[at].key == key):
        at = (at + 1) & mask
    return at


@numba.njit
def larger_minute(sums):
    """The minute's sums with twice the room."""
    old = sums.copy()
    sums = xs.grow(sums, 2 * len(sums))
    for i in range(len(sums)):
        sums[i].tally = 0
    for i in range(len(old)):
        if old[i].tally != 0:
            sums[sum_of(sums, old[i].vid, old[i].key)] = old[i]
    return sums


@numba.njit(inline="always")
def average(tally):
    """The average speed that a tally stands for."""
    return (tally >> TALLY_BITS) / (tally & ((1 << TALLY_BITS) - 1))


@numba.njit
def add_speed(sums, vid, key, spd):
    """Count a report; what it adds to the average of its vehicle, and 1 if that is a new one."""
    entry = sums[sum_of(sums, vid, key)]
    before, more = entry.tally, (np.int64(spd) << TALLY_BITS) + 1
    if before == 0:
        entry.vid, entry.key, entry.tally = vid, key, more
        return np.float64(spd), 1
    entry.tally = before + more
    return average(entry.tally) - average(before), 0
