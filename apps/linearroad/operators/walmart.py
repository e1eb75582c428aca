"""Operators of rule set `walmart` only: its trips, its stops, and accidents that never end.

The validator of 2016 keeps a record of every (VID, XWay, Dir). A trip ends with lane 4 and begins
on lane 0. Cars with four equal reports are stopped, no matter how far apart the reports are. Only
the first accident of a segment counts.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.operators.accidents import marked, segment_key
from linearroad.operators.check import dir_of, lane_of, pos_of, seg_of
from linearroad.operators.trips import STOPPED_AFTER, Stops, note, place_of
from linearroad.operators.vehicles import VEHICLE_OUT, implausible_speeds
from linearroad.schema import (
    BY_TRIP,
    CROSSED,
    FIRST,
    FRESH,
    LANE_SHIFT,
    MARK,
    NO_MINUTE,
    REJECT,
    SECOND_REPORT,
    SEGMENTS,
    STOP,
    TRIGGER,
    column,
)
from linearroad.tables.expressways import XWAYS as EXPRESSWAYS
from linearroad.tables.expressways import slot_of
from linearroad.tables.visits import first_visit
from xstream.kernels.hashtable import EMPTY, clear, entry_of, following, home, with_room

__all__ = ["accidents_walmart", "vehicles_walmart"]

GAP = 60  # seconds after which a report on lane 0 starts a new trip

#: The record of a (VID, XWay, Dir).
RECORD = np.dtype(
    [
        ("key", "i8"), ("seen", "i8"), ("last", "i8"), ("minute", "i8"), ("low", "i8"),
        ("high", "i8"), ("pos", "i4"), ("seg", "i4"), ("trip", "i4"), ("lane", "i1"),
        ("equal", "i1"),
    ],
    align=True,
)  # fmt: skip

#: States of a vehicle at a place: it moved on, it stands, or its trip ended while it stood there.
MOVED, STANDS, ABANDONED = range(3)
VEHICLES, XWAYS = range(2)


@numba.njit
def first_this_minute(record, minute, seg):
    """1 if a vehicle reports from a segment for the first time in this minute, else 0."""
    if record.minute != minute:
        record.minute, record.low, record.high = minute, 0, 0
    return 1 if first_visit(record, seg) else 0


@numba.njit
def slots_of(xway, xways, number):
    """The slot of each report's expressway; new expressways get the next slots."""
    found = np.empty(len(xway), np.int64)
    for i in range(len(xway)):
        found[i], xways = slot_of(xways, number[XWAYS], np.int64(xway[i]))
        number[XWAYS] = max(number[XWAYS], found[i] + 1)
    return found


@numba.njit
def moved_on(record, time, where, road, stops):
    """Update the record of a vehicle; returns what the report does, as bits."""
    lane, seg, pos = lane_of(where), seg_of(where), pos_of(where)
    vid, is_new = np.int32(record.key & 0xFFFFFFFF), record.minute == NO_MINUTE
    before = place_of(road, record.lane, record.pos)
    if is_new or (lane == 0 and time - record.last > GAP):
        flag = FIRST
        if not is_new and record.equal == STOPPED_AFTER:
            note(stops, before, vid, ABANDONED)
        record.equal = 1
    else:
        flag = CROSSED if record.seg != seg else 0
        if record.lane == lane and record.pos == pos:
            if record.equal == STOPPED_AFTER - 1:
                note(stops, place_of(road, lane, pos), vid, STANDS)
            record.equal = min(record.equal + 1, STOPPED_AFTER)
        else:
            if record.equal == STOPPED_AFTER:
                note(stops, before, vid, MOVED)
            record.equal = 1
    if lane != 4 and flag != 0:
        flag |= TRIGGER
    record.last, record.lane, record.pos, record.seg = time, lane, pos, seg
    return flag


@numba.njit
def record_of(records, number, vehicle):
    """The index of a vehicle's record, which is created if it is new; there is room for it."""
    at = entry_of(records, vehicle)
    record = records[at]
    if record.key == EMPTY:
        record.key, record.trip = vehicle, number[VEHICLES]
        record.minute, record.equal, record.seen = NO_MINUTE, 0, NO_MINUTE
        number[VEHICLES] += 1
    return at


@xs.kernel(
    state={
        "number": np.zeros(2, np.int64),
        "record": np.full(1024, np.array((EMPTY,) + (0,) * 10, RECORD)),
        "xway": EXPRESSWAYS,
    },
    out=VEHICLE_OUT,
)
def vehicles_walmart(time, vid, spd, xway, where, origin, last, state, out):
    """Trips, crossings and stopped cars; `gain` is the speed itself, for one mean over reports."""
    n, number = len(vid), state.number
    slots = slots_of(xway, state.xway, number)
    records = with_room(state.record, number[VEHICLES] + n)
    vids, keys, links = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    actions, gains, rejects = np.empty(n, np.int8), np.empty(n), np.empty(n, REJECT)
    stops, speeds = Stops(np.empty(2 * n, STOP), np.zeros(1, np.int64)), np.empty(n, np.int32)
    kept, refused = 0, 0
    for i in range(n):
        lane, seg = lane_of(where[i]), np.int64(seg_of(where[i]))
        road = slots[i] * 2 + dir_of(where[i])
        # Two reports in one second are also rejected if they are from the two directions.
        opposite = records[entry_of(records, ((road ^ 1) << 32) + vid[i])]
        mine = records[entry_of(records, (road << 32) + vid[i])]
        if (mine.key != EMPTY and mine.seen == time) or (
            opposite.key != EMPTY and opposite.seen == time
        ):
            rejects[refused].origin, rejects[refused].reason = origin[i], SECOND_REPORT
            refused += 1
            continue
        record = records[record_of(records, number, (road << 32) + vid[i])]
        speeds[i - refused] = spd[i]
        record.seen = time
        if record.minute != NO_MINUTE and record.lane == 4 and lane != 0:
            continue  # ignored: the vehicle is off the road
        flag = moved_on(record, time, where[i], road, stops)
        vids[kept], keys[kept], links[kept] = vid[i], road * SEGMENTS + seg, record.trip
        fresh = FRESH if first_this_minute(record, time // 60, seg) else 0
        actions[kept], gains[kept] = flag | fresh | (lane << LANE_SHIFT), spd[i]
        kept += 1
    out.emit_at(
        0, time, last, vids[:kept], keys[:kept], links[:kept], actions[:kept], gains[:kept],
        np.array([BY_TRIP, number[VEHICLES]]), stops.row[: stops.count[0]], rejects[:refused],
        implausible_speeds(speeds[: n - refused]),
    )  # fmt: skip


#: The state of a vehicle at a place (`key`), and since when. A place has an entry for each
#: of its vehicles, so that searches continue to the next empty entry.
STOOD = np.dtype([("key", "i8"), ("vid", "i8"), ("since", "i8"), ("state", "i8")])
#: A first accident: its segment, its place, when it began, and the minute it is marked up to.
ACCIDENT = np.dtype(
    [("key", "i8"), ("place", "i8"), ("since", "i8"), ("marked", "i8"), ("over", "i8")], align=True
)
ENTRIES, ACCIDENTS = range(2)


@numba.njit
def standing_since(stood, place, since):
    """The number of vehicles that have been standing at a place since second `since`."""
    standing, size = 0, len(stood)
    at = home(place, size)
    while stood[at].key != EMPTY:
        here = stood[at]
        standing += here.key == place and here.state != MOVED and here.since <= since
        at = following(at, size)
    return standing


@numba.njit
def stood_with_room(stood, entries):
    """The table, at most two thirds full with `entries` entries. It may have moved."""
    if 3 * entries <= 2 * len(stood):
        return stood
    old = stood.copy()
    stood = xs.grow(stood, 2 * entries)
    clear(stood)
    for i in range(len(old)):
        if old[i].key != EMPTY:
            at = home(old[i].key, len(stood))
            while stood[at].key != EMPTY:
                at = following(at, len(stood))
            stood[at] = old[i]
    return stood


@numba.njit
def set_state(stood, number, stop, time):
    """Set the state of a vehicle at a place; ABANDONED is final."""
    size = len(stood)
    at = home(stop.place, size)
    while stood[at].key != EMPTY:
        if stood[at].key == stop.place and stood[at].vid == stop.vid:
            break
        at = following(at, size)
    here = stood[at]
    if here.key == EMPTY:
        number[ENTRIES] += 1
        here.key, here.vid, here.state = stop.place, stop.vid, MOVED
    if here.state == ABANDONED:
        return
    if stop.until == STANDS:
        here.since = time
    here.state = stop.until


@numba.njit
def first_accident(accidents, count, key, place, time):
    """Whether an accident that starts now is the first of its segment and is not listed yet."""
    for a in range(count):
        if accidents[a].key == key and (accidents[a].since < time or accidents[a].place == place):
            return False
    return True


@xs.kernel(
    state={
        "number": np.zeros(2, np.int64),
        "stood": np.full(1024, np.array((EMPTY, 0, 0, 0), STOOD)),
        "accident": np.zeros(16, ACCIDENT),
    },
    out={"mark": column(MARK)},
)
def accidents_walmart(time, stop, state, out):
    """Marks the minutes of first accidents when a minute is over and no vehicle has moved."""
    number, accidents = state.number, state.accident
    marks, count, minute = np.empty(4, MARK), 0, time // 60
    for a in range(number[ACCIDENTS]):
        accident = accidents[a]
        if accident.over == 0:
            for past in range(max(accident.marked + 1, minute - 2), minute):  # older ones are over
                marks = marked(marks, count, accident.key, past)
                count += 1
            accident.marked = max(accident.marked, minute - 1)
    stood = stood_with_room(state.stood, number[ENTRIES] + len(stop))
    for i in range(len(stop)):  # vehicles that move away in this second come first
        if stop[i].until != STANDS:
            set_state(stood, number, stop[i], time)
    for i in range(len(stop)):
        if stop[i].until == STANDS:
            set_state(stood, number, stop[i], time)
    for i in range(len(stop)):
        place = stop[i].place
        where = segment_key(place)
        if stop[i].until == STANDS and standing_since(stood, place, time) > 1:
            if first_accident(accidents, number[ACCIDENTS], where, place, time):
                if number[ACCIDENTS] == len(accidents):
                    accidents = xs.grow(accidents, 2 * len(accidents))
                accident = accidents[number[ACCIDENTS]]
                accident.key, accident.place, accident.since = where, place, time
                accident.marked, accident.over = minute - 1, 0
                number[ACCIDENTS] += 1
    for a in range(number[ACCIDENTS]):
        accident = accidents[a]
        if accident.over == 0:
            if standing_since(stood, accident.place, accident.since) < 2:
                accident.over = 1
    out.emit_at(0, marks[:count])
