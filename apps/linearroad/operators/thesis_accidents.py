"""Rule set `thesis`: accidents by segment, second by second, and the alerts when they are detected.

A segment has an accident as long as two vehicles are stopped in it, wherever they stand. Reports of
the last 30 seconds are in a queue: it says which vehicles no longer stand for lack of a report, and
who is near an accident that is detected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from linearroad.operators.check import room
from linearroad.schema import NO_MINUTE, SEGMENTS, column
from linearroad.tables.batches import PERIOD

__all__ = ["ALERTED", "CHANGE", "REACH", "direction_step", "thesis_accidents"]

REACH = 5  # segments upstream and downstream
LEAST = 2  # stopped vehicles

#: A segment in which an accident begins (`is_on` 1) or is over (0).
CHANGE = np.dtype([("key", "i8"), ("is_on", "i8")])
#: An alert: the vehicle, and the segment with the accident.
ALERTED = np.dtype([("vid", "i4"), ("xway", "i4"), ("key", "i8")])
#: A report in the queue.
RECENT = np.dtype([("second", "i8"), ("link", "i4"), ("vid", "i4"), ("key", "i8")], align=True)
#: A vehicle, by its number: its last report, and where and until when it stands (-1: nowhere).
STANDING = np.dtype([("seen", "i8"), ("until", "i8"), ("key", "i8")])
#: A segment: how many stand in it, whether there is an accident, and whether that was emitted.
SEGMENT = np.dtype([("stopped", "i4"), ("is_on", "i2"), ("told", "i2")], align=True)

#: Indices of `number`: the queue's begin and end, vehicles with a record, and those that stand.
BEGIN, END, KNOWN, STOPPED = range(4)


class Road(NamedTuple):
    """The queue, the vehicles and the segments; `number` is the state's."""

    recent: Any
    vehicle: Any
    segment: Any
    number: Any


@numba.njit(inline="always")
def direction_step(key):
    """From a segment to the next one downstream: Mile + 1 eastbound, Mile - 1 westbound."""
    return 1 if (key // SEGMENTS) % 2 == 1 else -1


@numba.njit
def with_queue(recent, number, more):
    """The queue with room for `more` reports; its begin may move to the front."""
    begin, end = number[BEGIN], number[END]
    if end + more > len(recent):
        for i in range(end - begin):
            recent[i] = recent[begin + i]
        number[BEGIN], number[END] = 0, end - begin
        recent = room(recent, 2 * (end - begin + more))
    return recent


@numba.njit
def with_tables(road, report):
    """Tables with room for the vehicles of reports and all segments of their expressways."""
    vehicles, keys, number = road.number[KNOWN], np.int64(len(road.segment)), road.number
    for i in range(len(report)):
        vehicles = max(vehicles, np.int64(report[i].link) + 1)
        keys = max(keys, (report[i].key // (2 * SEGMENTS) + 1) * (2 * SEGMENTS))
    vehicle = room(road.vehicle, vehicles)
    for v in range(number[KNOWN], vehicles):
        vehicle[v].seen, vehicle[v].until, vehicle[v].key = NO_MINUTE, NO_MINUTE, -1
    number[KNOWN] = vehicles
    recent = with_queue(road.recent, number, len(report))
    return Road(recent, vehicle, room(road.segment, keys), number)


@numba.njit
def leave(road, vehicle):
    """A vehicle no longer stands."""
    if vehicle.key >= 0:
        road.segment[vehicle.key].stopped -= 1
        road.number[STOPPED] -= 1
        vehicle.key = -1


@numba.njit
def expire(road, time):
    """Drop reports that are 30 s old at `time`, and vehicles that stand for lack of a later one."""
    number = road.number
    while number[BEGIN] < number[END]:
        one = road.recent[number[BEGIN]]
        if one.second + PERIOD > time:
            return
        vehicle = road.vehicle[one.link]
        if vehicle.until <= time:
            leave(road, vehicle)
        number[BEGIN] += 1


@numba.njit
def take(road, time, report, stop):
    """Apply the reports and stops of a second."""
    number = road.number
    for i in range(len(report)):
        one = road.recent[number[END]]
        one.second, one.link, one.vid = time, report[i].link, report[i].vid
        one.key = report[i].key
        road.vehicle[one.link].seen = time
        number[END] += 1
    for i in range(len(stop)):
        vehicle = road.vehicle[stop[i].vid]
        if vehicle.key != stop[i].place or stop[i].until <= time:
            leave(road, vehicle)
            if stop[i].until > time:
                vehicle.key = stop[i].place
                road.segment[vehicle.key].stopped += 1
                number[STOPPED] += 1
        vehicle.until = stop[i].until


@numba.njit
def alerted(road, time, key, xway, alerts, count):
    """Alert every vehicle upstream of an accident in segment `key`; returns alerts and count."""
    step = direction_step(key)
    for i in range(road.number[BEGIN], road.number[END]):
        one = road.recent[i]
        behind = (key - one.key) * step
        upstream = 1 <= behind <= REACH and one.key // SEGMENTS == key // SEGMENTS
        if upstream and road.vehicle[one.link].seen == one.second:
            if count == len(alerts):
                larger = np.empty(2 * count, ALERTED)
                larger[:count] = alerts
                alerts = larger
            alerts[count].vid, alerts[count].xway, alerts[count].key = one.vid, xway, key
            count += 1
    return alerts, count


@numba.njit
def end_accidents(road):
    """Accidents with fewer than two stopped vehicles are over."""
    for key in range(len(road.segment)):
        segment = road.segment[key]
        if segment.stopped < LEAST:
            segment.is_on = 0


@xs.kernel(
    state={
        "number": np.zeros(4, np.int64),
        "recent": np.zeros(1024, RECENT),
        "vehicle": np.zeros(1024, STANDING),
        "segment": np.zeros(2 * SEGMENTS, SEGMENT),
        "xway": np.zeros(1, np.int32),
    },
    out={"change": column(CHANGE), "alert": column(ALERTED)},
)
def thesis_accidents(time, report, stop, state, out):
    """Emits the accidents that begin or end with a second, and the alerts of those that begin."""
    road = with_tables(Road(state.recent, state.vehicle, state.segment, state.number), report)
    xways = room(state.xway, len(road.segment) // (2 * SEGMENTS))
    for i in range(len(report)):
        xways[report[i].key // (2 * SEGMENTS)] = report[i].xway
    changes, changed = np.empty(len(road.segment), CHANGE), 0
    alerts, count = np.empty(16, ALERTED), 0
    quiet = state.number[STOPPED] == 0 and len(stop) == 0
    expire(road, time - 1)  # the seconds before this one, which may have had no rows
    if not quiet:
        end_accidents(road)
    take(road, time, report, stop)
    expire(road, time)
    for key in range(0 if quiet else len(road.segment)):
        segment = road.segment[key]
        has_accident = segment.stopped >= LEAST
        if has_accident and segment.is_on == 0:
            xway = xways[key // (2 * SEGMENTS)]
            alerts, count = alerted(road, time, key, xway, alerts, count)
        segment.is_on = has_accident
        if segment.is_on != segment.told:
            segment.told = segment.is_on
            changes[changed].key, changes[changed].is_on = key, segment.is_on
            changed += 1
    out.emit_at(0, changes[:changed], alerts[:count])
