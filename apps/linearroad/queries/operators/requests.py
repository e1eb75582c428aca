"""Requests about history: daily expenditure and travel time.

History lies in arrays by expressway, memory-mapped or built from flat files; kernels get tables of
their addresses, so that any number of expressways is one argument each.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad._kernels_store import find_vid, first_minute, in_seconds, one_segment
from linearroad.queries.layout import REQUEST_WIDTH, column

__all__ = ["expenditure", "travel_time"]

TOLL_DAYS = 69
SUMS = (7, 2, 1440, 100, 3)
SUMS_LENGTH = 7 * 2 * 1440 * 100 * 3


@numba.njit
def place_of_xway(xways, xway):
    """The place of an expressway in an ascending table, or -1."""
    at = np.searchsorted(xways, xway)
    return at if at < len(xways) and xways[at] == xway else -1


@xs.kernel(out={"time": int, "qid": column("int32"), "balance": column("int64")})
def expenditure(time, request, xways, vids_at, vids_count, tolls_at, vids_by, out):
    """Type 3: TollHistory's Tolls of (VID, Day, XWay), 0 where there is no row."""
    rows, asked = len(request) // REQUEST_WIDTH, 0
    qid, balance = np.empty(rows, np.int32), np.empty(rows, np.int64)
    for i in range(rows):
        at = i * REQUEST_WIDTH
        if request[at] != 3:
            continue
        x = place_of_xway(xways, request[at + 2])
        spent = np.int64(0)
        if x >= 0 and vids_count[x] > 0:
            vids = xs.array_at(vids_at[x], vids_count[x], np.int32)
            v = find_vid(vids, np.int64(request[at + 1]) - vids_by[x])
            if v >= 0:
                tolls = xs.array_at(tolls_at[x], vids_count[x] * TOLL_DAYS, np.int32)
                spent = np.int64(tolls[v * TOLL_DAYS + request[at + 8] - 1])
        qid[asked], balance[asked] = request[at + 3], spent
        asked += 1
    out.emit_at(0, time, qid[:asked], balance[:asked])


@numba.njit
def travel_together(request, rows, places, answers, sums_at, seconds, toll):
    """Journeys through the history, side by side: while one waits for memory, others go on.

    `rows` are where in `request` each begins, `places` which expressway's sums it goes by, and
    `answers` which row of `seconds` and `toll` it is answered in.
    """
    many = len(rows)
    clock, segment = np.empty(many), np.empty(many, np.int64)
    going, left = np.arange(many), many
    for i in range(many):
        clock[i], segment[i] = request[rows[i] + 7], request[rows[i] + 4]
        toll[answers[i]] = 0
    while left > 0:
        k = 0
        while k < left:
            i = going[k]
            at = rows[i]
            sinit, send = request[at + 4], request[at + 5]
            if segment[i] == send:
                seconds[answers[i]] = in_seconds(clock[i] - request[at + 7])
                left -= 1
                going[k] = going[left]
                continue
            sums = xs.array_at(sums_at[places[i]], SUMS_LENGTH, np.int32)
            way = 0 if sinit <= send else 1
            begin = first_minute(np.int64(request[at + 6]), way)
            minutes, here = one_segment(sums, begin, segment[i], clock[i])
            clock[i] += minutes
            toll[answers[i]] += here
            segment[i] += 1 - 2 * way
            k += 1


@xs.kernel(
    out={
        "time": int,
        "qid": column("int32"),
        "seconds": column("int32"),
        "toll": column("int64"),
    }
)
def travel_time(time, request, known, xways, sums_at, out):
    """Type 4: seconds and tolls by SegmentHistory; -1, -1 where none is loaded (`known` 0).

    An expressway that the history does not know has no day at all: speed 1, toll 0.
    """
    most = len(request) // REQUEST_WIDTH
    qid, seconds = np.empty(most, np.int32), np.empty(most, np.int32)
    toll, rows = np.empty(most, np.int64), np.empty(most, np.int64)
    places, answers = np.empty(most, np.int64), np.empty(most, np.int64)
    asked, journeys = 0, 0
    for at in range(0, len(request), REQUEST_WIDTH):
        if request[at] != 4:
            continue
        place = place_of_xway(xways, request[at + 2])
        qid[asked], seconds[asked], toll[asked] = request[at + 3], -1, -1
        if place >= 0:
            rows[journeys], places[journeys], answers[journeys] = at, place, asked
            journeys += 1
        elif known:
            seconds[asked] = 3600 * abs(request[at + 5] - request[at + 4])
            toll[asked] = 0
        asked += 1
    travel_together(request, rows[:journeys], places, answers, sums_at, seconds, toll)
    out.emit_at(0, time, qid[:asked], seconds[:asked], toll[:asked])
