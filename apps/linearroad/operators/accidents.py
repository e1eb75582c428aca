"""Accidents: minutes in which two stopped vehicles stand at one place.

The output are marks, pairs of (segment key, minute). Stopped vehicles are in a hash table by place,
those of one place side by side, so that each is found with one look into memory; places where two
or more stand are in a short list.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.schema import FEET_A_SEGMENT, MARK, NO_MINUTE, SEGMENTS, column

__all__ = ["accidents"]

ENTRIES, PAIRS, LAST_SECOND = range(3)

#: A vehicle that stands at a place until some second (up to 2³¹ + 30); a place of -1: nobody.
STANDING = np.dtype([("place", "i8"), ("until", "u4"), ("vid", "i4")], align=True)
NOWHERE = -1


@numba.njit(inline="always")
def home(place, size):
    """Where the vehicles of a place are looked for first. Queues are regular, so it mixes well."""
    mixed = place * -7046029254386353131
    mixed = (mixed ^ (mixed >> 32)) * -4658895280553007687
    return (((mixed >> 32) & 0xFFFFFFFF) * size) >> 32


@numba.njit
def segment_key(place):
    """The segment that a place lies in."""
    return ((place >> 20) // 8) * SEGMENTS + (place & 0xFFFFF) // FEET_A_SEGMENT


@numba.njit
def two_until(standing, place):
    """Until when at least two vehicles stand at a place."""
    first, second = NO_MINUTE, NO_MINUTE
    size = len(standing)
    at = home(place, size)
    while standing[at].place != NOWHERE:
        if standing[at].place == place:
            until = np.int64(standing[at].until)
            if until > first:
                first, second = until, first
            elif until > second:
                second = until
        at = at + 1 if at + 1 < size else 0
    return second


@numba.njit
def marked(marks, count, key, minute):
    """Add a mark; the marks as they are now."""
    if count == len(marks):
        larger = np.empty(2 * count, MARK)
        larger[:count] = marks
        marks = larger
    marks[count].key, marks[count].minute = key, minute
    return marks


@numba.njit
def listed(pairs, number, place):
    """Add a place to those where two or more stand, unless it is there; the list as it is now."""
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
    """Without those that stood there long ago, and with room for `more`: at most 3/5 are taken."""
    old, live = standing.copy(), 0
    for i in range(len(old)):
        live += old[i].place != NOWHERE and old[i].until > now
    if 5 * (live + more) > 3 * len(standing):
        standing = xs.grow(standing, 9 * (live + more) // 5)
    size = len(standing)
    for at in range(size):
        standing[at].place = NOWHERE
    for i in range(len(old)):
        if old[i].place != NOWHERE and old[i].until > now:
            at = home(old[i].place, size)
            while standing[at].place != NOWHERE:
                at = at + 1 if at + 1 < size else 0
            standing[at] = old[i]
    number[ENTRIES] = live
    return standing


@numba.njit(inline="always")
def stand(standing, number, place, vid, until, time):
    """Enter or move the end of a vehicle's standing; whether another stands there at `time`."""
    size = len(standing)
    at, mine, company = home(place, size), -1, False
    while standing[at].place != NOWHERE:
        if standing[at].place == place:
            if standing[at].vid == vid:
                mine = at
            elif standing[at].until > time:
                company = True
        at = at + 1 if at + 1 < size else 0
    if mine < 0:
        mine = at
        number[ENTRIES] += 1
        standing[mine].place, standing[mine].vid = place, vid
    standing[mine].until = until
    return company


@xs.kernel(
    state={
        "number": np.array([0, 0, NO_MINUTE], np.int64),
        "standing": np.full(64, np.array((NOWHERE, 0, 0), STANDING)),
        "pairs": np.zeros(16, np.int64),
    },
    out={"mark": column(MARK)},
)
def accidents(time, stop, by_second, state, out):
    """Marks minutes in which two vehicles stand at one place.

    `by_second` (rule set `paper`): every second counts, also those without any report. Otherwise
    (`brandeis`) only the reports of standing vehicles do, 0 to 30 s after one of another's.
    """
    number, standing, pairs = state.number, state.standing, state.pairs
    marks, count, minute = np.empty(4, MARK), 0, time // 60
    if by_second:  # what happened since the last second that had rows
        for p in range(number[PAIRS]):
            end = min(two_until(standing, pairs[p]), time)
            if number[LAST_SECOND] + 1 < end:
                for past in range((number[LAST_SECOND] + 1) // 60, (end - 1) // 60 + 1):
                    marks = marked(marks, count, segment_key(pairs[p]), past)
                    count += 1
    if 4 * (number[ENTRIES] + len(stop)) > 3 * len(standing):
        standing = rebuilt(standing, number, time - 1, len(stop))
    for i in range(len(stop)):  # where they stand is anywhere: all are looked for at once
        xs.prefetch(standing, home(stop[i].place, len(standing)))
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
