"""Accidents: minutes in which two stopped vehicles stand at one place.

The output is a list of marks, pairs of (segment key, minute). Stopped vehicles are in a hash table
by place, in which a place has one entry per vehicle; places where two or more stand are in a short
list.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.schema import FEET_A_SEGMENT, MARK, NO_MINUTE, SEGMENTS, column
from xstream.kernels.hashtable import EMPTY, clear, following, home

__all__ = ["accidents"]

ENTRIES, PAIRS, LAST_SECOND = range(3)

#: A vehicle that stands at a place (`key`) until some second (up to 2³¹ + 30).
STANDING = np.dtype([("key", "i8"), ("until", "u4"), ("vid", "i4")], align=True)


@numba.njit(inline="always")
def first_of(place, size):
    """The index at which the search for the vehicles of a place starts.

    Cars in a queue stand at regular distances, which a single multiplication maps to few entries.
    """
    mixed = place * -7046029254386353131
    return home(mixed ^ (mixed >> 32), size)


@numba.njit
def segment_key(place):
    """The segment of a place."""
    return ((place >> 20) // 8) * SEGMENTS + (place & 0xFFFFF) // FEET_A_SEGMENT


@numba.njit
def two_until(standing, place):
    """Until when at least two vehicles stand at a place."""
    first, second = NO_MINUTE, NO_MINUTE
    size = len(standing)
    at = first_of(place, size)
    while standing[at].key != EMPTY:
        if standing[at].key == place:
            until = np.int64(standing[at].until)
            if until > first:
                first, second = until, first
            elif until > second:
                second = until
        at = following(at, size)
    return second


@numba.njit
def marked(marks, count, key, minute):
    """Add a mark; returns the marks, which may have moved."""
    if count == len(marks):
        larger = np.empty(2 * count, MARK)
        larger[:count] = marks
        marks = larger
    marks[count].key, marks[count].minute = key, minute
    return marks


@numba.njit
def listed(pairs, number, place):
    """Add a place where two or more stand to the list; returns the list, which may have moved."""
    for p in range(number[PAIRS]):
        if pairs[p] == place:
            return pairs
    if number[PAIRS] == len(pairs):
        pairs = xs.grow(pairs, 2 * len(pairs))
    pairs[number[PAIRS]] = place
    number[PAIRS] += 1
    return pairs


@numba.njit
def rebuilt(standing, number, now, more):
    """The table without vehicles that no longer stand, and at most 3/5 full with `more` others.

    Entries are dropped only here, which `hashtable.with_room` does not do.
    """
    old, live = standing.copy(), 0
    for i in range(len(old)):
        live += old[i].key != EMPTY and old[i].until > now
    if 5 * (live + more) > 3 * len(standing):
        standing = xs.grow(standing, 9 * (live + more) // 5)
    size = len(standing)
    clear(standing)
    for i in range(len(old)):
        if old[i].key != EMPTY and old[i].until > now:
            at = first_of(old[i].key, size)
            while standing[at].key != EMPTY:
                at = following(at, size)
            standing[at] = old[i]
    number[ENTRIES] = live
    return standing


@numba.njit(inline="always")
def stand(standing, number, place, vid, until, time):
    """Set until when a vehicle stands; returns whether another stands there at `time`."""
    size = len(standing)
    at, mine, company = first_of(place, size), -1, False
    while standing[at].key != EMPTY:
        if standing[at].key == place:
            if standing[at].vid == vid:
                mine = at
            elif standing[at].until > time:
                company = True
        at = following(at, size)
    if mine < 0:
        mine = at
        number[ENTRIES] += 1
        standing[mine].key, standing[mine].vid = place, vid
    standing[mine].until = until
    return company


@xs.kernel(
    state={
        "number": np.array([0, 0, NO_MINUTE], np.int64),
        "standing": np.full(64, np.array((EMPTY, 0, 0), STANDING)),
        "pairs": np.zeros(16, np.int64),
    },
    out={"mark": column(MARK)},
)
def accidents(time, stop, by_second, state, out):
    """Marks minutes in which two vehicles stand at one place.

    With `by_second` (rule set `paper`) every second counts, even without reports. Otherwise
    (`brandeis`) only reports of standing vehicles count, 0 to 30 s after a report of another one.
    """
    number, standing, pairs = state.number, state.standing, state.pairs
    marks, count, minute = np.empty(4, MARK), 0, time // 60
    if by_second:  # process the seconds without rows since the last call
        for p in range(number[PAIRS]):
            end = min(two_until(standing, pairs[p]), time)
            if number[LAST_SECOND] + 1 < end:
                for past in range((number[LAST_SECOND] + 1) // 60, (end - 1) // 60 + 1):
                    marks = marked(marks, count, segment_key(pairs[p]), past)
                    count += 1
    if 4 * (number[ENTRIES] + len(stop)) > 3 * len(standing):
        standing = rebuilt(standing, number, time - 1, len(stop))
    for i in range(len(stop)):  # places are scattered in memory: fetch all at once
        xs.prefetch(standing, first_of(stop[i].place, len(standing)))
    for i in range(len(stop)):
        one = stop[i]
        if stand(standing, number, one.place, one.vid, one.until, time) and one.until > time:
            pairs = listed(pairs, number, one.place)
    kept = 0
    for p in range(number[PAIRS]):
        if two_until(standing, pairs[p]) > time:
            marks = marked(marks, count, segment_key(pairs[p]), minute)
            count += 1
            if by_second:
                pairs[kept] = pairs[p]
                kept += 1
    number[PAIRS], number[LAST_SECOND] = kept, time
    out.emit_at(0, marks[:count])
