"""Requests about history: daily expenditure and travel time.

History lies in arrays by expressway, memory-mapped or built from flat files; kernels get tables of
their addresses, so that any number of expressways is one argument each.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad._kernels_store import find_vid, travel
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
    rows, asked = len(request) // REQUEST_WIDTH, 0
    qid, seconds = np.empty(rows, np.int32), np.empty(rows, np.int32)
    toll = np.empty(rows, np.int64)
    for i in range(rows):
        at = i * REQUEST_WIDTH
        if request[at] != 4:
            continue
        sinit, send = np.int64(request[at + 4]), np.int64(request[at + 5])
        x = place_of_xway(xways, request[at + 2])
        qid[asked], seconds[asked], toll[asked] = request[at + 3], -1, -1
        if x >= 0:
            sums = xs.array_at(sums_at[x], SUMS_LENGTH, np.int32).reshape(SUMS)
            seconds[asked], toll[asked] = travel(
                sums, sinit, send, np.int64(request[at + 6]), np.int64(request[at + 7])
            )
        elif known:
            seconds[asked], toll[asked] = 3600 * abs(send - sinit), 0
        asked += 1
    out.emit_at(0, time, qid[:asked], seconds[:asked], toll[:asked])
