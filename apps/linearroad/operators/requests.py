"""Requests about history: daily expenditure and travel time.

The history of each expressway is in arrays, memory-mapped or built from flat files. Kernels take
tables of the addresses of these arrays, one row per expressway.
"""

from __future__ import annotations

import math

import numba
import numpy as np

import xstream as xs
from linearroad.history._kernels_store import find_vid, first_minute, in_seconds, one_segment
from linearroad.history.store import SEGMENT_SUMS_SHAPE, TOLL_DAYS
from linearroad.schema import (
    ANSWERS,
    ASKS_EXPENDITURE,
    ASKS_TRAVEL_TIME,
    EXPENDITURE,
    TRAVEL_TIME,
)

__all__ = ["PAPER_MANNER", "SUM_TABLE", "TOLL_TABLE", "answer_requests", "thesis_manner"]

SUMS_LENGTH = math.prod(SEGMENT_SUMS_SHAPE)

#: The tolls of an expressway: addresses of its VIDs, which ascend, and of their tolls by day;
#: `vids` is their number, and `vid_by` is subtracted from a VID before the search.
TOLL_TABLE = np.dtype(
    [("xway", "i8"), ("vids_at", "i8"), ("vids", "i8"), ("tolls_at", "i8"), ("vid_by", "i8")]
)
#: The address of the sums of an expressway's segments.
SUM_TABLE = np.dtype([("xway", "i8"), ("sums_at", "i8")])


#: How a rule set answers requests: cars without a toll, the toll per square of a car above them,
#: whether a journey includes its last segment, the number of the first minute of a day and of the
#: first day of a week (0 or 1), and whether expenditures are those of TollHistory.
PAPER_MANNER = (50, 2, 0, 1, 1)


def thesis_manner(base_toll: int) -> tuple[int, int, int, int, int]:
    """How the thesis does; its expenditures are today's, which the accounts know."""
    return (150, base_toll, 1, 0, 0)


@numba.njit
def place_of_xway(tables, xway):
    """The index of an expressway in a table in ascending order, or -1."""
    low, high = 0, len(tables)
    while low < high:
        middle = (low + high) >> 1
        if tables[middle].xway < xway:
            low = middle + 1
        else:
            high = middle
    return low if low < len(tables) and tables[low].xway == xway else -1


@numba.njit
def spent_on(tolls, request):
    """Tolls of (VID, Day, XWay) in TollHistory, or 0 if there is no row."""
    x = place_of_xway(tolls, request.xway)
    if x < 0 or tolls[x].vids == 0:
        return np.int64(0)
    table = tolls[x]
    vids = xs.array_at(table.vids_at, table.vids, np.int32)
    v = find_vid(vids, np.int64(request.vid) - table.vid_by)
    if v < 0:
        return np.int64(0)
    by_day = xs.array_at(table.tolls_at, table.vids * TOLL_DAYS, np.int32)
    return np.int64(by_day[v * TOLL_DAYS + request.day - 1])


@numba.njit
def travel_together(journeys, places, answers, sums, value, amount, manner):
    """Compute several journeys in alternation, so that their cache misses overlap.

    `places` are the rows of `sums` that the journeys use, and `answers` the rows of `value`
    (seconds) and `amount` (toll) that are filled in.
    """
    free_cars, base_toll, ends_after, first, _ = manner
    many = len(journeys)
    taken, segment = np.zeros(many), np.empty(many, np.int64)
    going, left = np.arange(many), many
    for i in range(many):
        segment[i] = journeys[i].sinit
        amount[answers[i]] = 0
    while left > 0:
        k = 0
        while k < left:
            i = going[k]
            journey = journeys[i]
            way = 0 if journey.sinit <= journey.send else 1
            if segment[i] == journey.send + ends_after * (1 - 2 * way):
                value[answers[i]] = in_seconds(taken[i])
                left -= 1
                going[k] = going[left]
                continue
            by_minute = xs.array_at(sums[places[i]].sums_at, SUMS_LENGTH, np.int32)
            begin = first_minute(np.int64(journey.dow) + 1 - first, way)
            minutes, toll = one_segment(
                by_minute, begin, segment[i], journey.tod + 1 - first + taken[i], free_cars,
                base_toll,
            )  # fmt: skip
            taken[i] += minutes
            amount[answers[i]] += toll
            segment[i] += 1 - 2 * way
            k += 1


@xs.kernel(out=ANSWERS)
def answer_requests(time, last, request, tolls, sums, knows_segments, manner, out):
    """Answers daily expenditures from `tolls` and travel times from `sums`, one row per expressway.

    `manner`: how the rule set does that (`PAPER_MANNER`).

    Without SegmentHistory (`knows_segments` 0), travel time and toll are -1. For an
    expressway that is not in the history the speed is 1 and the toll 0.
    """
    most, asked, journeys = len(request), 0, 0
    kind, who = np.empty(most, np.int8), np.empty(most, np.int32)
    value, amount = np.empty(most, np.int32), np.empty(most, np.int64)
    travelling, places = np.empty_like(request), np.empty(most, np.int64)
    answers = np.empty(most, np.int64)
    for i in range(most):
        if request[i].type == ASKS_EXPENDITURE and manner[4]:
            kind[asked], value[asked] = EXPENDITURE, 0
            amount[asked] = spent_on(tolls, request[i])
        elif request[i].type == ASKS_TRAVEL_TIME:
            kind[asked], value[asked], amount[asked] = TRAVEL_TIME, -1, -1
            place = place_of_xway(sums, request[i].xway)
            if place >= 0:
                travelling[journeys], places[journeys] = request[i], place
                answers[journeys] = asked
                journeys += 1
            elif knows_segments:
                value[asked] = 3600 * (abs(request[i].send - request[i].sinit) + manner[2])
                amount[asked] = 0
        else:
            continue
        who[asked] = request[i].qid
        asked += 1
    travel_together(travelling[:journeys], places, answers, sums, value, amount, manner)
    out.emit_at(0, time, last, kind[:asked], who[:asked], value[:asked], amount[:asked])
