"""Trips that end and begin, apart from those that go on: cars that leave, vanish or return.

Cars that cease to stand are noted for the operator of accidents, and the speeds of vehicles that
may come back in the same minute are summed up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from linearroad.operators.check import POS_MASK, lane_of
from linearroad.schema import SEGMENTS, STOP
from linearroad.tables.batches import (
    BEFORE_AT,
    EQUAL_AT,
    FATE_AT,
    NEW,
    OVER,
    PERIOD,
    RING,
    SEGMENT2,
    SEGMENT2_AT,
    SEGMENT_AT,
    STANDS,
    SUMMED_AT,
    latest,
    unfinished,
)
from linearroad.tables.speeds import add_speed, speed_before, speed_of
from xstream.kernels.hashtable import clear, with_room

__all__ = [
    "HIGHEST",
    "MINUTE",
    "NEVER",
    "ODDS",
    "SLOTS",
    "STOPPED_AFTER",
    "SUMS",
    "Speeds",
    "Stops",
    "begin_second",
    "end_trips",
    "is_standing",
    "note",
    "overdue",
    "place_of",
    "standing_place",
    "start_trips",
    "with_stops",
]

STOPPED_AFTER = 4  # equal reports
NEVER = -(2**40)

#: Indices of `number`: expressways, the highest VID so far, sums of this minute, speeds that do not
#: fit, and the minute.
SLOTS, HIGHEST, SUMS, ODDS, MINUTE = range(5)


class Stops(NamedTuple):
    """The stops of a second, with room for all, and their number."""

    row: Any
    count: Any


class Speeds(NamedTuple):
    """The sums of this minute and the speeds that do not fit; `number` is the state's."""

    sum: Any
    odd: Any
    number: Any


@numba.njit(inline="always")
def place_of(direction, lane, pos):
    """A position in a lane of a direction of an expressway, as one number."""
    return ((direction * 8 + lane) << 20) + pos


@numba.njit(inline="always")
def note(stops, place, vid, until):
    """Add a stop; there is room for it."""
    stop = stops.row[stops.count[0]]
    stop.place, stop.vid, stop.until = place, vid, until
    stops.count[0] += 1


@numba.njit
def with_stops(stops, more):
    """The stops with room for more."""
    row = np.empty(stops.count[0] + more, STOP)
    row[: stops.count[0]] = stops.row[: stops.count[0]]
    return Stops(row, stops.count)


@numba.njit(inline="always")
def slot_at(slots, k):
    """The slot of a report; there are no slots where there is only one expressway."""
    return np.int64(slots[k]) if len(slots) > 0 else np.int64(0)


@numba.njit
def standing_place(reports, k):
    """The place of a report."""
    where = np.int64(reports.where[k])
    direction = slot_at(reports.slot, k) * 2 + ((where >> SEGMENT_AT) & 1)
    return place_of(direction, lane_of(where), where & POS_MASK)


@numba.njit(inline="always")
def is_standing(bits):
    """Whether a report is from a standing car."""
    return (bits >> EQUAL_AT) & STANDS == STANDS


@numba.njit
def add_to_sums(reports, k, speeds):
    """Add the speeds of a report and its predecessor to this minute's sums, if not yet counted."""
    bits, vid = np.int64(reports.bits[k]), reports.vid[k]
    if (bits >> SUMMED_AT) & 1:
        return
    base, number = slot_at(reports.slot, k) * (2 * SEGMENTS), speeds.number
    here = np.int64(reports.where[k]) >> SEGMENT_AT
    speed = speed_of(reports.bits, speeds.odd, k)
    number[SUMS] += add_speed(speeds.sum, vid, base + segment_in_table(here), speed)[1]
    if (bits >> BEFORE_AT) & 1:
        there = (bits >> SEGMENT2_AT) & SEGMENT2
        speed = speed_before(reports.bits, speeds.odd, k)
        number[SUMS] += add_speed(speeds.sum, vid, base + segment_in_table(there), speed)[1]


@numba.njit(inline="always")
def segment_in_table(packed):
    """The index of a segment by its packed segment and direction."""
    return (packed & 1) * SEGMENTS + (packed >> 1)


@numba.njit
def end_trips(reports, gone, speeds, this_minute, stops, until):
    """Note that vehicles whose last reports these are have left; returns the sums, which may have
    moved. `until`: when they ceased to stand, -1 if that is not noted."""
    sums, number = speeds.sum, speeds.number
    if this_minute:
        sums = with_room(sums, number[SUMS] + 2 * len(gone))
    speeds = Speeds(sums, speeds.odd, number)
    for k in gone:
        if this_minute:
            add_to_sums(reports, k, speeds)
        if until >= 0 and is_standing(reports.bits[k]):
            note(stops, standing_place(reports, k), reports.vid[k], until)
    return sums


@numba.njit
def overdue(state, time):
    """The number of reports in batches whose vehicles should have reported before `time`."""
    many = np.int64(0)
    for s in range(RING):
        if NEVER < state.second[s] < time - PERIOD:
            many += state.count[s]
    return many


@numba.njit
def begin_second(state, reports, speeds, time, stops, only_changes):
    """End the trips that are overdue, in order of time; returns the minute's sums, which may have
    moved."""
    number, sums = speeds.number, speeds.sum
    if time // 60 != number[MINUTE]:
        number[MINUTE], number[SUMS] = time // 60, 0
        clear(sums)
    first = np.int64(time)
    for s in range(RING):
        if state.second[s] > NEVER:
            first = min(first, state.second[s])
    for second in range(first, min(first + RING, time - PERIOD)):
        s = second & (RING - 1)
        if state.second[s] == second:
            gone = np.empty(state.count[s], np.int32)
            end = state.base[s] + state.count[s]
            many = unfinished(reports.bits, state.base[s], end, 0, gone)
            this_minute = second >= time - time % 60
            until = second + PERIOD if only_changes else np.int64(-1)
            sums = end_trips(
                reports, gone[:many], Speeds(sums, speeds.odd, number), this_minute, stops, until
            )  # fmt: skip
            state.count[s], state.second[s] = 0, NEVER
    return sums


@numba.njit
def start_trips(batches, speeds, time, vehicles, links, stops, only_changes):
    """Put vehicles without a predecessor on the road.

    A vehicle that reported less than 30 s ago ends that trip, and no longer stands.
    """
    reports, number = batches.report, speeds.number
    highest = number[HIGHEST]
    for i in range(len(links)):
        if links[i] != NEW:
            continue
        vid = vehicles[i] & 0xFFFFFFFF
        if vid > highest:
            number[HIGHEST] = max(number[HIGHEST], vid)
            continue
        last, second = latest(batches, time, vehicles[i])
        if last < 0:
            continue
        if second >= time - time % 60:
            add_to_sums(reports, last, speeds)
        reports.bits[last] |= OVER << FATE_AT
        if only_changes and is_standing(reports.bits[last]):
            note(stops, standing_place(reports, last), reports.vid[last], time)
