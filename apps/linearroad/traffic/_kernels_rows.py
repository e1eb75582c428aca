"""From packed reports to the 15 columns of the stream, queries included."""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.traffic._kernels_cars import mix, unit

SEGMENT_FT = 5280
SEGMENTS = 100
(TYPE, TIME, VID, SPD, XWAY, LANE, DIR, SEG, POS, QID, SINIT, SEND, DOW, TOD, DAY) = range(15)
BALANCE, EXPENDITURE, TRAVEL_TIME = 2, 3, 4
# Section 3.1.1 of the paper: one report in a hundred comes with a query, half for balances.
QUERY_SHARE = 0.01
BALANCE_SHARE, EXPENDITURE_SHARE = 0.5, 0.1
OWN_EXPRESSWAY_SHARE = 0.9
SALT_QUERY = 0x9E11
DRAW_QUERY, DRAW_KIND, DRAW_OWN, DRAW_XWAY, DRAW_A, DRAW_B, DRAW_C, DRAW_D, DRAWS = range(9)


@xs.compiled
def hash_all(key, salt, numbers):
    """A random 64-bit number for each of many counters."""
    stream = mix(key, salt)
    out = np.empty(numbers.shape[0], np.uint64)
    for i in range(numbers.shape[0]):
        out[i] = mix(stream, np.int64(numbers[i]))
    return out


@xs.compiled
def asks(stream, trip, second):
    """Whether the report of a trip at a (simulated) second comes with a query."""
    return unit(mix(stream, np.int64(trip)), second * DRAWS + DRAW_QUERY) < QUERY_SHARE


@xs.compiled
def count_queries(key, packed, rows_by_second, begin):
    """The number of reports that come with a query, in some seconds."""
    stream = mix(key, SALT_QUERY)
    n = 0
    row = 0
    for i in range(rows_by_second.shape[0]):
        for _ in range(rows_by_second[i]):
            if asks(stream, packed[row, 0], begin + i):
                n += 1
            row += 1
    return n


@xs.compiled
def write_query(out, row, stream, trip, second, ring):
    """Fill in a random query; the columns of its report are already set.

    `ring` has the first expressway that it may be about, and their number.
    """
    draws = mix(stream, np.int64(trip))
    base = second * DRAWS
    kind = unit(draws, base + DRAW_KIND)
    if kind < BALANCE_SHARE:
        out[TYPE, row] = BALANCE
        out[XWAY, row] = -1
        return
    if unit(draws, base + DRAW_OWN) >= OWN_EXPRESSWAY_SHARE:
        out[XWAY, row] = ring[0] + np.int32(unit(draws, base + DRAW_XWAY) * ring[1])
    if kind < BALANCE_SHARE + EXPENDITURE_SHARE:
        out[TYPE, row] = EXPENDITURE
        out[DAY, row] = 1 + np.int32(unit(draws, base + DRAW_A) * 69)
        return
    out[TYPE, row] = TRAVEL_TIME
    start = np.int32(unit(draws, base + DRAW_A) * SEGMENTS)
    # Any other segment.
    way = 1 + np.int32(unit(draws, base + DRAW_B) * (SEGMENTS - 1))
    out[SINIT, row] = start
    out[SEND, row] = (start + way) % SEGMENTS
    out[DOW, row] = 1 + np.int32(unit(draws, base + DRAW_C) * 7)
    out[TOD, row] = 1 + np.int32(unit(draws, base + DRAW_D) * 1440)


@xs.compiled
def write_report(out, row, word, time, vid, xway):
    """A position report."""
    pos = word & 0xFFFFF
    out[TYPE, row] = 0
    out[TIME, row] = time
    out[VID, row] = vid
    out[SPD, row] = (word >> 20) & 0x7F
    out[XWAY, row] = xway
    out[LANE, row] = (word >> 27) & 0x7
    out[DIR, row] = (word >> 30) & 1
    out[SEG, row] = pos // SEGMENT_FT
    out[POS, row] = pos
    for column in range(QID, DAY + 1):
        out[column, row] = -1


@xs.compiled
def write_rows(out, packed, rows_by_second, vids, key, begin, cut, xway, ring, qid):
    """Rows of the seconds from `begin`; Time counts from `cut`. Returns rows, and the next QID.

    The reports of a second are in the order of their vehicles, as 30 seconds before, so that a
    reader can merge the two. The queries follow.
    """
    stream = mix(key, SALT_QUERY)
    row = 0
    first = 0
    for i in range(rows_by_second.shape[0]):
        second, last = begin + i, first + rows_by_second[i]
        order = first + np.argsort(vids[packed[first:last, 0]])
        for report in order:
            vid = vids[packed[report, 0]]
            write_report(out, row, packed[report, 1], second - cut, vid, xway)
            row += 1
        for report in order:
            trip = packed[report, 0]
            if asks(stream, trip, second):
                for column in range(DAY + 1):
                    out[column, row] = -1
                out[TIME, row] = second - cut
                out[VID, row] = vids[trip]
                out[XWAY, row] = xway
                out[QID, row] = qid
                write_query(out, row, stream, trip, second, ring)
                qid += 1
                row += 1
        first = last
    return row, qid
