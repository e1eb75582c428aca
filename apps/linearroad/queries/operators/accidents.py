"""Accidents: minutes in which two stopped vehicles stand at one place.

Two operators with one output: marks, pairs of (segment key, minute). Stopped vehicles hang in
chains by place, in a hash table; places where two or more stand are in a short list.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.queries.layout import FEET_A_SEGMENT, NO_MINUTE, SEGMENTS, column

__all__ = ["accidents"]

NODES, PAIRS, LAST_SECOND, LIVE = range(4)

STANDING = np.dtype([("place", "i8"), ("until", "i8"), ("vid", "i4"), ("next", "i4")], align=True)


@numba.njit(inline="always")
def bucket(place, heads):
    """The chain of a place."""
    return ((place * -7046029254386353131) >> 40) & (len(heads) - 1)


@numba.njit
def segment_key(place):
    """The segment that a place lies in."""
    return ((place >> 20) // 8) * SEGMENTS + (place & 0xFFFFF) // FEET_A_SEGMENT


@numba.njit
def two_until(heads, nodes, place):
    """Until when at least two vehicles stand at a place."""
    first, second = NO_MINUTE, NO_MINUTE
    node = heads[bucket(place, heads)]
    while node >= 0:
        if nodes[node].place == place:
            until = nodes[node].until
            if until > first:
                first, second = until, first
            elif until > second:
                second = until
        node = nodes[node].next
    return second


@numba.njit
def marked(marks, count, key, minute):
    """Add a mark; the marks as they are now."""
    if 2 * count == len(marks):
        marks = np.concatenate((marks, np.empty_like(marks)))
    marks[2 * count], marks[2 * count + 1] = key, minute
    return marks


@numba.njit
def rebuilt(heads, nodes, number, now):
    """Without those that stood there long ago; chains as short as ever."""
    live = 0
    for node in range(number[NODES]):
        if nodes[node].until > now:
            nodes[live] = nodes[node]
            live += 1
    size = len(heads)
    if 2 * live > size:
        heads = xs.grow(heads, 2 * size)
    heads[:] = -1
    for node in range(live):
        at = bucket(nodes[node].place, heads)
        nodes[node].next = heads[at]
        heads[at] = node
    number[NODES] = live
    return heads


@numba.njit
def stand(heads, nodes, number, place, vid, until, time):
    """Enter or move the end of a vehicle's standing; whether another stands there at `time`."""
    at = bucket(place, heads)
    node, mine, company = heads[at], -1, False
    while node >= 0:
        if nodes[node].place == place:
            if nodes[node].vid == vid:
                mine = node
            elif nodes[node].until > time:
                company = True
        node = nodes[node].next
    if mine < 0:
        mine = number[NODES]
        number[NODES] += 1
        nodes[mine].place, nodes[mine].vid = place, vid
        nodes[mine].next = heads[at]
        heads[at] = mine
    nodes[mine].until = until
    return company


@xs.kernel(
    state={
        "number": np.array([0, 0, NO_MINUTE, 0], np.int64),
        "heads": np.full(64, -1, np.int32),
        "nodes": np.zeros(64, STANDING),
        "pairs": np.zeros(16, np.int64),
    },
    out=column("int64"),
)
def accidents(
    time, vid, key, link, flags, fresh, gain, event, reject, kept_at, linked, implausible,
    by_second, state, out,
):  # fmt: skip
    """Marks minutes in which two vehicles stand at one place.

    `by_second` (rule set `paper`): every second counts, also those without any report. Otherwise
    (`brandeis`) only the reports of standing vehicles do, 0 to 30 s after one of another's.
    """
    number, heads, nodes, pairs = state.number, state.heads, state.nodes, state.pairs
    marks, count = np.empty(8, np.int64), 0
    minute, many = time // 60, len(event) // 3
    if number[NODES] + many > len(nodes):
        heads = rebuilt(heads, nodes, number, time - 1)
        if 8 * (number[NODES] + many) > 7 * len(nodes):
            nodes = xs.grow(nodes, 5 * (number[NODES] + many) // 4)
    if by_second:  # what happened since the last second that had rows
        for p in range(number[PAIRS]):
            end = min(two_until(heads, nodes, pairs[p]), time)
            if number[LAST_SECOND] + 1 < end:
                for past in range((number[LAST_SECOND] + 1) // 60, (end - 1) // 60 + 1):
                    marks = marked(marks, count, segment_key(pairs[p]), past)
                    count += 1
    for i in range(many):
        company = stand(
            heads, nodes, number, event[3 * i], event[3 * i + 1], event[3 * i + 2], time
        )
        if company and event[3 * i + 2] > time:
            known = False
            for p in range(number[PAIRS]):
                known = known or pairs[p] == event[3 * i]
            if not known:
                if number[PAIRS] == len(pairs):
                    pairs = xs.grow(pairs, 2 * len(pairs))
                pairs[number[PAIRS]] = event[3 * i]
                number[PAIRS] += 1
    kept = 0
    for p in range(number[PAIRS]):
        if two_until(heads, nodes, pairs[p]) > time:
            marks = marked(marks, count, segment_key(pairs[p]), minute)
            count += 1
            if by_second:
                pairs[kept] = pairs[p]
                kept += 1
    number[PAIRS], number[LAST_SECOND] = kept, time
    out.emit_at(0, marks[: 2 * count])
