"""Rule set `thesis`: trips, segments entered, exits and stopped vehicles.

A vehicle is followed on each expressway on its own. Its record is kept for the whole run, by a
number that other operators use as an index.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.operators.check import dir_of, lane_of, pos_of, room, seg_of
from linearroad.operators.trips import STOPPED_AFTER, Stops, note
from linearroad.operators.vehicles import implausible_speeds
from linearroad.operators.walmart import slots_of
from linearroad.schema import (
    CROSSED,
    FIRST,
    FRESH,
    NO_MINUTE,
    REJECT,
    SECOND_REPORT,
    SEGMENTS,
    STOP,
    TRIGGER,
    column,
)
from linearroad.tables.batches import PERIOD
from linearroad.tables.expressways import XWAYS as EXPRESSWAYS
from xstream.kernels.hashtable import EMPTY, entry_of, with_room

__all__ = ["EXIT", "THESIS_REPORT", "thesis_vehicles"]

#: What a report does, in addition to the bits of the schema: it is a trip's first on an exit ramp.
EXIT = 16
#: What a report means: the fields of `schema.MEANING`, with the number of its vehicle in `link`,
#: and the expressway.
THESIS_REPORT = np.dtype(
    [("vid", "i4"), ("key", "i4"), ("link", "i4"), ("xway", "i4"), ("actions", "i4")]
)

#: A vehicle on an expressway (`key`) and its number.
ENTRY = np.dtype([("key", "i8"), ("number", "i8")])
#: Its last report: when, segment, place in the segment (lane and offset), how many equal ones there
#: are in a row (up to 4), and what the trip has done; and the minute of its `visited` segments.
VEHICLE = np.dtype(
    [
        ("last", "i8"), ("minute", "i8"), ("key", "i4"), ("spot", "i4"), ("equal", "i2"),
        ("done", "i2"),
    ],
    align=True,
)  # fmt: skip
#: `done`: the trip has been in a travel lane, and on an exit ramp.
TRAVELLED, EXITED = 1, 2
WEST_RAMP, EAST_RAMP = 0, 7
OFFSET_BITS = 11
VEHICLES = 0  # index of `number`; the next one is that of expressways
#: The segments that a vehicle has visited in this minute, as words of this many bits.
WORDS, WORD_BITS = 4, 50


@numba.njit
def number_of(table, records, number, vehicle):
    """The number of a vehicle, which is created if it is new; there is room for it."""
    entry = table[entry_of(table, vehicle)]
    if entry.key == EMPTY:
        entry.key, entry.number = vehicle, number[VEHICLES]
        record = records[entry.number]
        record.last, record.minute, record.equal = NO_MINUTE, NO_MINUTE, 0
        number[VEHICLES] += 1
    return entry.number


@numba.njit
def first_visit(record, visited, minute, place):
    """1 if a vehicle reports from a segment for the first time in this minute, else 0."""
    if record.minute != minute:
        record.minute = minute
        visited[:] = 0
    word, bit = place // WORD_BITS, np.int64(1) << (place % WORD_BITS)
    new = visited[word] & bit == 0
    visited[word] |= bit
    return 1 if new else 0


@numba.njit
def moved_on(record, number, time, key, where, stops):
    """Update a vehicle with a report from segment `key`; returns what the report does, as bits."""
    lane = np.int32(lane_of(where))
    spot = (lane << OFFSET_BITS) | pos_of(where)
    if record.last != time - PERIOD:
        flag = FIRST | TRIGGER
        if record.equal == STOPPED_AFTER and record.last + PERIOD > time:
            note(stops, np.int64(record.key), number, time)
        record.equal, record.done = 1, 0
    else:
        flag = CROSSED | TRIGGER if record.key != key else 0
        if record.key == key and record.spot == spot:
            record.equal = min(record.equal + 1, STOPPED_AFTER)
        else:
            record.equal = 1
    if record.equal == STOPPED_AFTER:
        note(stops, np.int64(key), number, time + PERIOD)
    if lane != WEST_RAMP and lane != EAST_RAMP:
        record.done |= TRAVELLED
    elif record.done == TRAVELLED:
        record.done |= EXITED
        flag |= EXIT
    record.last, record.key, record.spot = time, key, spot
    return flag


@xs.kernel(
    state={
        "number": np.zeros(2, np.int64),
        "table": np.full(1024, np.array((EMPTY, 0), ENTRY)),
        "record": np.zeros(1024, VEHICLE),
        "visited": np.zeros(1024 * WORDS, np.int64),
        "xway": EXPRESSWAYS,
    },
    out={
        "time": int,
        "last": bool,
        "report": column(THESIS_REPORT),
        "key": column("int32"),
        "actions": column("int8"),
        "gain": column("float64"),
        "stop": column(STOP),
        "reject": column(REJECT),
        "implausible": int,
    },
)
def thesis_vehicles(time, vid, spd, xway, where, origin, last, state, out):
    """What each report does; `stop` is a vehicle's number, its segment and until when it stands.

    A stop that ends before its time, because another trip starts, ends in this second.
    """
    n, number = len(vid), state.number
    slots = slots_of(xway, state.xway, number)
    most = number[VEHICLES] + n
    table, records = with_room(state.table, most), room(state.record, most)
    visited = room(state.visited, most * WORDS)
    meant, rejects = np.empty(n, THESIS_REPORT), np.empty(n, REJECT)
    stops, speeds = Stops(np.empty(2 * n, STOP), np.zeros(1, np.int64)), np.empty(n, np.int32)
    keys, actions, gains = np.empty(n, np.int32), np.empty(n, np.int8), np.empty(n)
    kept, refused = 0, 0
    for i in range(n):
        me = number_of(table, records, number, (slots[i] << 32) + vid[i])
        record = records[me]
        if record.last == time:
            rejects[refused].origin, rejects[refused].reason = origin[i], SECOND_REPORT
            refused += 1
            continue
        place = np.int64(dir_of(where[i]) * SEGMENTS + seg_of(where[i]))
        key = slots[i] * (2 * SEGMENTS) + place
        meaning = meant[kept]
        meaning.actions = moved_on(record, me, time, key, where[i], stops)
        meaning.vid, meaning.key, meaning.link, meaning.xway = vid[i], key, me, xway[i]
        mine = visited[me * WORDS : (me + 1) * WORDS]
        fresh = FRESH if first_visit(record, mine, time // 60, place) else 0
        keys[kept], actions[kept], gains[kept] = key, fresh, spd[i]
        speeds[kept] = spd[i]
        kept += 1
    out.emit_at(
        0, time, last, meant[:kept], keys[:kept], actions[:kept], gains[:kept],
        stops.row[: stops.count[0]], rejects[:refused], implausible_speeds(speeds[:kept]),
    )  # fmt: skip
