"""Accidents: minutes in which two stopped vehicles stand at one place.

The output is a list of marks, pairs of (segment key, minute). A car is heard of when it begins to
stand and when it ceases to, not with every report. The number of cars at each place is in a hash
table; places where two or more stand are in a short list.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.schema import FEET_A_SEGMENT, MARK, NO_MINUTE, SEGMENTS, STAYS, column
from xstream.kernels.hashtable import EMPTY, clear, following, home

__all__ = ["STANDING", "accidents", "first_of", "marked", "segment_key"]

ENTRIES, PAIRS, LAST_SECOND = range(3)

#: A place (`key`) and the number of cars that stand there.
STANDING = np.dtype([("key", "i8"), ("cars", "i4")])


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
def marked(marks, count, key, minute):
    """Add a mark; returns the marks, which may have moved."""
    if count == len(marks):
        larger = np.empty(2 * count, MARK)
        larger[:count] = marks
        marks = larger
    marks[count].key, marks[count].minute = key, minute
    return marks


@numba.njit(inline="always")
def entry_at(standing, place):
    """The index of a place's entry, or of the empty entry where it would be."""
    size = len(standing)
    at = first_of(place, size)
    while standing[at].key != EMPTY and standing[at].key != place:
        at = following(at, size)
    return at


@numba.njit
def with_places(standing, places):
    """The table, at most three quarters full with `places` entries. It may have moved."""
    if 4 * places <= 3 * len(standing):
        return standing
    old = standing.copy()
    standing = xs.grow(standing, max(len(old) * 5 // 4, 3 * places // 2))
    clear(standing)
    for i in range(len(old)):
        if old[i].key != EMPTY:
            standing[entry_at(standing, old[i].key)] = old[i]
    return standing


@numba.njit
def remove(standing, hole):
    """Remove an entry. Entries behind it move up, so that no tombstones are needed."""
    size = len(standing)
    at = following(hole, size)
    while standing[at].key != EMPTY:
        wants = first_of(standing[at].key, size)
        # It may move to the hole, unless its home lies behind the hole (cyclically).
        if (at - wants + size) % size >= (at - hole + size) % size:
            standing[hole] = standing[at]
            hole = at
        at = following(at, size)
    standing[hole].key = EMPTY


@numba.njit
def mark_seconds(marks, count, place, begin, end):
    """Mark the minutes of seconds `begin` to below `end`; returns the marks and their number."""
    if begin < end:
        for minute in range(begin // 60, (end - 1) // 60 + 1):
            marks = marked(marks, count, segment_key(place), minute)
            count += 1
    return marks, count


@numba.njit
def leave(standing, pairs, number, place):
    """A car no longer stands at a place; returns whether that ends an accident."""
    at = entry_at(standing, place)
    if standing[at].key == EMPTY:
        return False
    standing[at].cars -= 1
    left = standing[at].cars
    if left == 0:
        remove(standing, at)
        number[ENTRIES] -= 1
    if left == 1:
        for p in range(number[PAIRS]):
            if pairs[p] == place:
                number[PAIRS] -= 1
                pairs[p] = pairs[number[PAIRS]]
                return True
    return False


@xs.kernel(
    state={
        "number": np.array([0, 0, NO_MINUTE], np.int64),
        "standing": np.full(16, np.array((EMPTY, 0), STANDING)),
        "pairs": np.zeros(4, np.int64),
    },
    out={"mark": column(MARK)},
)
def accidents(time, stop, state, out):
    """Marks minutes in which two vehicles stand at one place.

    `stop` has the cars that begin to stand in this second (STAYS), and those that ceased to, in
    order of time. Seconds without rows since the last call count too.
    """
    number, pairs = state.number, state.pairs
    standing = with_places(state.standing, number[ENTRIES] + len(stop))
    marks, count, past = np.empty(4, MARK), 0, number[LAST_SECOND] + 1
    for i in range(len(stop)):  # places are scattered in memory: fetch all at once
        xs.prefetch(standing, first_of(stop[i].place, len(standing)))
    for i in range(len(stop)):
        one = stop[i]
        if one.until != STAYS and leave(standing, pairs, number, one.place):
            marks, count = mark_seconds(marks, count, one.place, past, one.until)
    for p in range(number[PAIRS]):
        marks, count = mark_seconds(marks, count, pairs[p], past, time)
    for i in range(len(stop)):
        if stop[i].until != STAYS:
            continue
        place = stop[i].place
        here = standing[entry_at(standing, place)]
        if here.key == EMPTY:
            here.key, here.cars = place, 0
            number[ENTRIES] += 1
        here.cars += 1
        if here.cars == 2:
            pairs = xs.grow(pairs, number[PAIRS] + 1)
            pairs[number[PAIRS]] = place
            number[PAIRS] += 1
    for p in range(number[PAIRS]):
        marks, count = mark_seconds(marks, count, pairs[p], time, time + 1)
    number[LAST_SECOND] = time
    out.emit_at(0, marks[:count])
