"""What only rule set `walmart` needs: its trips, its stops and its accidents that never end.

The validator of 2016 keeps a record of every (VID, XWay, Dir). A trip ends with lane 4 and begins
on lane 0; stopped cars are those with four equal reports, however far apart; and only the first
accident of a segment exists.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.queries.layout import (
    BY_TRIP,
    CROSSED,
    FIRST,
    NO_MINUTE,
    SECOND_REPORT,
    SEGMENTS,
    TRIGGER,
    column,
)  # fmt: skip
from linearroad.queries.operators.accidents import marked, segment_key
from linearroad.queries.operators.roads import add_xway, slot_of
from linearroad.queries.operators.vehicles import (
    STOPPED_AFTER,
    VEHICLE_OUT,
    note,
    place_of,
)  # fmt: skip

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


@xs.kernel(
    state={
        "number": np.zeros(2, np.int64),
        "record": np.zeros(1024, RECORD),
        "xway_key": np.full(16, -1, np.int64),
        "xway_slot": np.zeros(16, np.int64),
    },
    out=VEHICLE_OUT,
)
def vehicles_walmart(
    time, vid, spd, xway, lane_dir_seg, pos, origin, request, rejected, last, state,
    out,
):  # fmt: skip
    """Trips, crossings and stopped cars; `gain` is the speed itself, for one mean over reports."""
    n = len(vid)
    number, records = state.number, state.record
    xway_keys, xway_slots = state.xway_key, state.xway_slot
    keys, trips = np.empty(n, np.int32), np.empty(n, np.int32)
    flags, fresh = np.empty(n, np.int16), np.empty(n, np.int8)
    gains, vids = np.empty(n, np.float64), np.empty(n, np.int32)
    events, happened = np.empty(6 * n, np.int64), 0
    rejects, refused = np.empty(2, np.int64), 0
    implausible, kept = 0, 0
    for i in range(n):
        slot = slot_of(xway_keys, xway_slots, np.int64(xway[i]))
        if slot < 0:
            slot = number[XWAYS]
            xway_keys, xway_slots = add_xway(xway_keys, xway_slots, slot, np.int64(xway[i]))
            number[XWAYS] = slot + 1
        if 3 * (number[VEHICLES] + 1) > 2 * len(records):
            records = larger_records(records)
        lane, seg = lane_dir_seg[i] & 7, np.int64(lane_dir_seg[i] >> 4)
        road = slot * 2 + ((lane_dir_seg[i] >> 3) & 1)
        # Two reports in one second: also when they are from the two directions.
        opposite = records[record_at(records, ((road ^ 1) << 32) + vid[i])]
        record = records[record_at(records, (road << 32) + vid[i])]
        if (record.used and record.seen == time) or (opposite.used and opposite.seen == time):
            if 2 * refused == len(rejects):
                rejects = np.concatenate((rejects, np.empty_like(rejects)))
            rejects[2 * refused], rejects[2 * refused + 1] = origin[i], SECOND_REPORT
            refused += 1
            continue
        if spd[i] < 0 or spd[i] > 100:
            implausible += 1
        place = place_of(road * SEGMENTS, lane, pos[i])
        new = record.used == 0
        if new:
            record.used, record.vehicle, record.trip = 1, (road << 32) + vid[i], number[VEHICLES]
            record.minute, record.equal = NO_MINUTE, 0
            number[VEHICLES] += 1
        record.seen = time
        if not new and record.lane == 4 and lane != 0:
            continue  # off the road: ignored altogether
        old_place = place_of(road * SEGMENTS, record.lane, record.pos)
        if new or (lane == 0 and time - record.last > GAP):
            flag = FIRST
            if not new and record.equal == STOPPED_AFTER:
                happened = note(events, happened, old_place, np.int64(vid[i]), FOR_EVER)
            record.equal = 1
        else:
            flag = CROSSED if record.seg != seg else 0
            if record.lane == lane and record.pos == pos[i]:
                if record.equal == STOPPED_AFTER - 1:
                    happened = note(events, happened, place, np.int64(vid[i]), STANDS)
                record.equal = min(record.equal + 1, STOPPED_AFTER)
            else:
                if record.equal == STOPPED_AFTER:
                    happened = note(events, happened, old_place, np.int64(vid[i]), MOVED)
                record.equal = 1
        if lane != 4 and flag != 0:
            flag |= TRIGGER
        record.last, record.lane, record.pos, record.seg = time, lane, pos[i], seg
        vids[kept], keys[kept] = vid[i], road * SEGMENTS + seg
        trips[kept], flags[kept] = record.trip, flag | (lane << 4)
        fresh[kept] = first_this_minute(record, time // 60, seg)
        gains[kept] = spd[i]
        kept += 1
    out.emit_at(
        0, time, vids[:kept], keys[:kept], trips[:kept], flags[:kept], fresh[:kept], gains[:kept],
        events[: 3 * happened], rejects[: 2 * refused], BY_TRIP, number[VEHICLES], implausible,
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
    out=column("int64"),
)
def accidents_walmart(
    time, vid, key, link, flags, fresh, gain, event, reject, kept_at, linked, implausible, state,
    out,
):  # fmt: skip
    """Marks the minutes of first accidents, once each minute is over and nobody has moved in it."""
    number, heads, nodes, accidents = state.number, state.heads, state.nodes, state.accident
    marks, count, minute = np.empty(8, np.int64), 0, time // 60
    for a in range(number[ACCIDENTS]):
        accident = accidents[a]
        if accident.over == 0:
            for past in range(accident.marked + 1, minute):
                marks = marked(marks, count, accident.key, past)
                count += 1
            accident.marked = max(accident.marked, minute - 1)
    many = len(event) // 3
    if number[NODES] + many > len(nodes):
        nodes = xs.grow(nodes, 2 * (number[NODES] + many))
    for i in range(many):  # who moves away in this second does not meet who stops in it
        if event[3 * i + 2] != STANDS:
            set_state(heads, nodes, number, event[3 * i], event[3 * i + 1], event[3 * i + 2], time)
    for i in range(many):
        if event[3 * i + 2] == STANDS:
            set_state(heads, nodes, number, event[3 * i], event[3 * i + 1], STANDS, time)
    for i in range(many):
        place = event[3 * i]
        where = segment_key(place)
        if event[3 * i + 2] == STANDS and standing_since(heads, nodes, place, time) > 1:
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
    out.emit_at(0, marks[: 2 * count])
