"""Accidents of rule set `brandeis`: reports of two standing cars at one place, up to 30 s apart.

Every report of a standing vehicle counts, so all of them are in a hash table by place, in which a
place has one entry per vehicle. Places where two or more stand in this second are in a short list.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.operators.accidents import first_of, marked, segment_key
from linearroad.schema import MARK, NO_MINUTE, column
from xstream.kernels.hashtable import EMPTY, clear, following

__all__ = ["accidents_brandeis"]

ENTRIES, PAIRS = range(2)

#: A vehicle that stands at a place (`key`) until some second (up to 2³¹ + 30).
STANDING = np.dtype([("key", "i8"), ("until", "u4"), ("vid", "i4")], align=True)


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
        "number": np.zeros(2, np.int64),
        "standing": np.full(64, np.array((EMPTY, 0, 0), STANDING)),
        "pairs": np.zeros(16, np.int64),
    },
    out={"mark": column(MARK)},
)
def accidents_brandeis(time, stop, state, out):
    """Marks minutes with a report of a standing vehicle 0 to 30 s after that of another one."""
    number, standing, pairs = state.number, state.standing, state.pairs
    marks, count, minute = np.empty(4, MARK), 0, time // 60
    if 4 * (number[ENTRIES] + len(stop)) > 3 * len(standing):
        standing = rebuilt(standing, number, time - 1, len(stop))
    for i in range(len(stop)):  # places are scattered in memory: fetch all at once
        xs.prefetch(standing, first_of(stop[i].place, len(standing)))
    for i in range(len(stop)):
        one = stop[i]
        if stand(standing, number, one.place, one.vid, one.until, time) and one.until > time:
            pairs = listed(pairs, number, one.place)
    for p in range(number[PAIRS]):
        if two_until(standing, pairs[p]) > time:
            marks = marked(marks, count, segment_key(pairs[p]), minute)
            count += 1
    number[PAIRS] = 0
    out.emit_at(0, marks[:count])
