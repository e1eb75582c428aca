"""What only rule set `walmart` needs: its trips, its stops and its accidents that never end.

The validator of 2016 keeps a record of every (VID, XWay, Dir). A trip ends with lane 4 and begins
on lane 0; stopped cars are those with four equal reports, however far apart; and only the first
accident of a segment exists.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.operators.accidents import marked, segment_key
from linearroad.operators.check import dir_of, lane_of, pos_of, seg_of
from linearroad.operators.vehicles import (
    STOPPED_AFTER,
    VEHICLE_OUT,
    Stops,
    implausible_speeds,
    note,
    place_of,
)
from linearroad.schema import (
    BY_TRIP,
    CROSSED,
    FIRST,
    LANE_SHIFT,
    MARK,
    NO_MINUTE,
    REJECT,
    REPORT,
    SECOND_REPORT,
    SEGMENTS,
    STOP,
    TRIGGER,
    column,
)
from linearroad.tables.expressways import add_xway, slot_of

__all__ = ["accidents_walmart", "vehicles_walmart"]

GAP = 60  # seconds after which a report on lane 0 starts a new trip

RECORD = np.dtype(
    [
        ("vehicle", "i8"), ("seen", "i8"), ("last", "i8"), ("minute", "i8"), ("low", "i8"),
        ("high", "i8"), ("pos", "i4"), ("seg", "i4"), ("trip", "i4"), ("lane", "i1"),
        ("equal", "i1"), ("used", "i1"),
    ],
    align=True,
)  # fmt: skip

#: What happened to a vehicle that stands: it began to, it moved, or its trip ended as it stood.
STANDS, MOVED, FOR_EVER = 1, 0, 2
VEHICLES, XWAYS = range(2)


@numba.njit(inline="always")
def record_at(records, vehicle):
    """Where the record of a (VID, XWay, Dir) is, or would be."""
    mask = len(records) - 1
    at = ((vehicle * -7046029254386353131) >> 32) & mask
    while records[at].used and records[at].vehicle != vehicle:
        at = (at + 1) & mask
    return at


@numba.njit
def first_this_minute(record, minute, seg):
    """Whether a vehicle reports from a segment for the first time in this minute."""
    if record.minute != minute:
        record.minute, record.low, record.high = minute, 0, 0
    bit = np.int64(1) << (seg % 50)
    if seg < 50:
        new = record.low & bit == 0
        record.low |= bit
    else:
        new = record.high & bit == 0
        record.high |= bit
    return 1 if new else 0


@numba.njit
def larger_records(records):
    """Records with twice the room."""
    old = records.copy()
    records = xs.grow(records, 2 * len(records))
    for i in range(len(records)):
        records[i].used = 0
    for i in range(len(old)):
        if old[i].used:
            records[record_at(records, old[i].vehicle)] = old[i]
    return records


@numba.njit
def slots_of(xway, keys, slots, number):
    """The slot of each report's expressway; those that are new get one."""
    found = np.empty(len(xway), np.int64)
    for i in range(len(xway)):
        slot = slot_of(keys, slots, np.int64(xway[i]))
        if slot < 0:
            slot = number[XWAYS]
            keys, slots = add_xway(keys, slots, slot, np.int64(xway[i]))
            number[XWAYS] = slot + 1
        found[i] = slot
    return found


@numba.njit
def moved_on(record, time, where, road, stops):
    """Take a report into its vehicle's record: what it does, as flags."""
    lane, seg, pos = lane_of(where), seg_of(where), pos_of(where)
    vid, is_new = np.int32(record.vehicle & 0xFFFFFFFF), record.minute == NO_MINUTE
    before = place_of(road * SEGMENTS, record.lane, record.pos)
    if is_new or (lane == 0 and time - record.last > GAP):
        flag = FIRST
        if not is_new and record.equal == STOPPED_AFTER:
            note(stops, before, vid, FOR_EVER)
        record.equal = 1
    else:
        flag = CROSSED if record.seg != seg else 0
        if record.lane == lane and record.pos == pos:
            if record.equal == STOPPED_AFTER - 1:
                note(stops, place_of(road * SEGMENTS, lane, pos), vid, STANDS)
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
    """The place of a vehicle's record, which may be made now; there is room for it."""
    at = record_at(records, vehicle)
    if records[at].used == 0:
        record = records[at]
        record.used, record.vehicle, record.trip = 1, vehicle, number[VEHICLES]
        record.minute, record.equal, record.seen = NO_MINUTE, 0, NO_MINUTE
        number[VEHICLES] += 1
    return at


@xs.kernel(
    state={
        "number": np.zeros(2, np.int64),
        "record": np.zeros(1024, RECORD),
        "xway_key": np.full(16, -1, np.int64),
        "xway_slot": np.zeros(16, np.int64),
    },
    out=VEHICLE_OUT,
)
def vehicles_walmart(time, vid, spd, xway, where, origin, last, state, out):
    """Trips, crossings and stopped cars; `gain` is the speed itself, for one mean over reports."""
    n, number, records = len(vid), state.number, state.record
    slots = slots_of(xway, state.xway_key, state.xway_slot, number)
    while 3 * (number[VEHICLES] + n) > 2 * len(records):
        records = larger_records(records)
    meant, rejects = np.empty(n, REPORT), np.empty(n, REJECT)
    stops, speeds = Stops(np.empty(2 * n, STOP), np.zeros(1, np.int64)), np.empty(n, np.int32)
    kept, refused = 0, 0
    for i in range(n):
        lane, seg = lane_of(where[i]), np.int64(seg_of(where[i]))
        road = slots[i] * 2 + dir_of(where[i])
        # Two reports in one second: also when they are from the two directions.
        opposite = records[record_at(records, ((road ^ 1) << 32) + vid[i])]
        mine = record_at(records, (road << 32) + vid[i])
        if (records[mine].used and records[mine].seen == time) or (
            opposite.used and opposite.seen == time
        ):
            rejects[refused].origin, rejects[refused].reason = origin[i], SECOND_REPORT
            refused += 1
            continue
        record = records[record_of(records, number, (road << 32) + vid[i])]
        speeds[i - refused] = spd[i]
        record.seen = time
        if record.minute != NO_MINUTE and record.lane == 4 and lane != 0:
            continue  # off the road: ignored altogether
        flag = moved_on(record, time, where[i], road, stops)
        meaning = meant[kept]
        meaning.vid, meaning.key, meaning.link = vid[i], road * SEGMENTS + seg, record.trip
        meaning.flags = flag | (lane << LANE_SHIFT)
        meaning.fresh, meaning.gain = first_this_minute(record, time // 60, seg), spd[i]
        kept += 1
    out.emit_at(
        0, time, last, meant[:kept], np.array([BY_TRIP, number[VEHICLES]]),
        stops.row[: stops.count[0]], rejects[:refused], implausible_speeds(speeds[: n - refused]),
    )  # fmt: skip


STOOD = np.dtype([("place", "i8"), ("vid", "i8"), ("since", "i8"), ("next", "i8"),
                  ("state", "i8")], align=True)  # fmt: skip
#: A first accident: its segment, its place, when it began, and the minute it is marked up to.
ACCIDENT = np.dtype(
    [("key", "i8"), ("place", "i8"), ("since", "i8"), ("marked", "i8"), ("over", "i8")], align=True
)
NODES, ACCIDENTS = range(2)


@numba.njit(inline="always")
def bucket(place, heads):
    """The chain of a place."""
    return ((place * -7046029254386353131) >> 40) & (len(heads) - 1)


@numba.njit
def standing_since(heads, nodes, place, since):
    """How many vehicles stand at a place that already stood there at second `since`."""
    standing, node = 0, heads[bucket(place, heads)]
    while node >= 0:
        here = nodes[node]
        if here.place == place and here.state != MOVED and here.since <= since:
            standing += 1
        node = here.next
    return standing


@numba.njit
def set_state(heads, nodes, number, place, vid, state, time):
    """What a vehicle that stood at a place does now; one that stands for ever stays."""
    at = bucket(place, heads)
    node = heads[at]
    while node >= 0 and not (nodes[node].place == place and nodes[node].vid == vid):
        node = nodes[node].next
    if node < 0:
        node = number[NODES]
        number[NODES] += 1
        nodes[node].place, nodes[node].vid, nodes[node].state = place, vid, MOVED
        nodes[node].next = heads[at]
        heads[at] = node
    if nodes[node].state == FOR_EVER:
        return
    if state == STANDS:
        nodes[node].since = time
    nodes[node].state = state


@numba.njit
def first_accident(accidents, count, key, place, time):
    """Whether an accident that starts now is a first one of its segment, and not known yet."""
    for a in range(count):
        if accidents[a].key == key and (accidents[a].since < time or accidents[a].place == place):
            return False
    return True


@xs.kernel(
    state={
        "number": np.zeros(2, np.int64),
        "heads": np.full(1024, -1, np.int64),
        "nodes": np.zeros(64, STOOD),
        "accident": np.zeros(16, ACCIDENT),
    },
    out={"mark": column(MARK)},
)
def accidents_walmart(time, stop, state, out):
    """Marks the minutes of first accidents, once each minute is over and nobody has moved in it."""
    number, heads, nodes, accidents = state.number, state.heads, state.nodes, state.accident
    marks, count, minute = np.empty(4, MARK), 0, time // 60
    for a in range(number[ACCIDENTS]):
        accident = accidents[a]
        if accident.over == 0:
            for past in range(max(accident.marked + 1, minute - 2), minute):  # older ones are over
                marks = marked(marks, count, accident.key, past)
                count += 1
            accident.marked = max(accident.marked, minute - 1)
    if number[NODES] + len(stop) > len(nodes):
        nodes = xs.grow(nodes, 2 * (number[NODES] + len(stop)))
    for i in range(len(stop)):  # who moves away in this second does not meet who stops in it
        if stop[i].until != STANDS:
            set_state(heads, nodes, number, stop[i].place, stop[i].vid, stop[i].until, time)
    for i in range(len(stop)):
        if stop[i].until == STANDS:
            set_state(heads, nodes, number, stop[i].place, stop[i].vid, STANDS, time)
    for i in range(len(stop)):
        place = stop[i].place
        where = segment_key(place)
        if stop[i].until == STANDS and standing_since(heads, nodes, place, time) > 1:
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
            if standing_since(heads, nodes, accident.place, accident.since) < 2:
                accident.over = 1
    out.emit_at(0, marks[:count])
