"""The vehicles on the road: who reported when, and what each report means.

Vehicles report every 30 seconds, so the batch of 30 seconds ago holds the same vehicles. That
batch *is* the state: a ring of the last 64 seconds' reports, each second with a small hash table
of its own. A report finds its predecessor in one table that fits the cache, and nothing has to be
kept for vehicles that have left. A report that has no predecessor there (a new trip, or traffic
that is not regular) looks through the seconds since, and since the minute began.

Per report this yields what the operators behind need: its segment, whether it starts a trip,
crosses into another segment and triggers a notification, and what it adds to its segment's
average of this minute.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.queries.layout import (
    CROSSED,
    FIRST,
    SECOND_REPORT,
    SEGMENTS,
    TRIGGER,
    column,
)  # fmt: skip

__all__ = ["PERIOD", "VEHICLE_OUT", "vehicles"]

RING = 64  # seconds; more than a minute, a power of two
PERIOD = 30  # seconds between two reports of a trip
STOPPED_AFTER = 4  # equal reports

REPORT = np.dtype(
    [
        ("vid", "i4"), ("slot", "i4"), ("pos", "i4"), ("key", "i4"), ("time", "i8"), ("sum", "i8"),
        ("reports", "i4"), ("trip", "i4"), ("link", "i8"), ("lane", "i1"), ("equal", "i1"),
        ("taken", "i1"),
    ],
    align=True,
)  # fmt: skip

#: count: how many reports ever; expired: the last second whose leftovers have been dealt with;
#: slots: how many expressways; trips: how many trip numbers are in use; free: how many are free.
COUNT, EXPIRED, SLOTS, TRIPS, FREE = range(5)

STATE = {
    "number": np.array([0, -1, 0, 0, 0], np.int64),
    "report": np.zeros(1 << 12, REPORT),
    "table": np.zeros(RING * 64, np.int32),
    "base": np.zeros(RING, np.int64),
    "count": np.zeros(RING, np.int64),
    "second": np.full(RING, -(2**40), np.int64),
    "xway_key": np.full(16, -1, np.int64),
    "xway_slot": np.zeros(16, np.int64),
    "free": np.zeros(64, np.int32),
}

#: What comes out, a row a report; `flags` has the lane in its upper bits; `event` has three int64
#: a row (place, VID, until when it stands there), `reject` two. `trips` is one more than the
#: largest trip number.
VEHICLE_OUT = {
    "time": int,
    "vid": column("int32"),
    "key": column("int32"),
    "trip": column("int32"),
    "flags": column("int16"),
    "fresh": column("int8"),
    "gain": column("float64"),
    "event": column("int64"),
    "reject": column("int64"),
    "trips": int,
    "implausible": int,
}


@numba.njit(inline="always")
def spread(vid, slot, mask):
    """Where a vehicle of an expressway hashes to."""
    return (((vid + (slot << 33)) * -7046029254386353131) >> 33) & mask


@numba.njit
def slot_of(keys, slots, xway):
    """The slot of an expressway, or -1 where it has none yet."""
    mask = len(keys) - 1
    at = (xway * 2654435761 >> 8) & mask
    while keys[at] != -1:
        if keys[at] == xway:
            return slots[at]
        at = (at + 1) & mask
    return -1


@numba.njit
def put_slot(keys, slots, xway, slot):
    """Enter an expressway that is not there."""
    mask = len(keys) - 1
    at = (xway * 2654435761 >> 8) & mask
    while keys[at] != -1:
        at = (at + 1) & mask
    keys[at], slots[at] = xway, slot


@numba.njit
def add_xway(keys, slots, slot, xway):
    """Give an expressway a slot; the table, at most half full, as it is now."""
    size = len(keys)
    if 2 * (slot + 1) > size:
        old_keys, old_slots = keys.copy(), slots.copy()
        keys, slots = xs.grow(keys, 2 * size), xs.grow(slots, 2 * size)
        keys[:] = -1
        for i in range(size):
            if old_keys[i] != -1:
                put_slot(keys, slots, old_keys[i], old_slots[i])
    put_slot(keys, slots, xway, slot)
    return keys, slots


@numba.njit
def larger_ring(reports, oldest, end):
    """The ring of reports twice as long, every report where its number says."""
    size = len(reports)
    reports = xs.grow(reports, 2 * size)
    for number in range(oldest, end):
        now = number & (2 * size - 1)
        if now >= size:
            reports[now] = reports[number & (size - 1)]
    return reports


@numba.njit
def larger_tables(table, reports, base, count, needed):
    """Tables with room for `needed` reports a second, filled again."""
    size = len(table) // RING
    while size < 2 * needed:
        size *= 2
    table = xs.grow(table, RING * size)
    table[:] = 0
    for s in range(RING):
        for k in range(count[s]):
            report = reports[(base[s] + k) & (len(reports) - 1)]
            at = spread(report.vid, report.slot, size - 1)
            while table[s * size + at] != 0:
                at = (at + 1) & (size - 1)
            table[s * size + at] = k + 1
    return table


@numba.njit
def find(table, reports, base, s, vid, slot):
    """The number of the vehicle's report in second `s` of the ring, or -1."""
    size = len(table) // RING
    mask = len(reports) - 1
    at = spread(vid, slot, size - 1)
    while table[s * size + at] != 0:
        number = base[s] + table[s * size + at] - 1
        report = reports[number & mask]
        if report.vid == vid and report.slot == slot:
            return number
        at = (at + 1) & (size - 1)
    return -1


@numba.njit
def find_since(table, reports, base, second, time, since, vid, slot):
    """The vehicle's latest report from second `since` to before `time`, or -1."""
    for earlier in range(time - 1, since - 1, -1):
        s = earlier & (RING - 1)
        if second[s] == earlier:
            number = find(table, reports, base, s, vid, slot)
            if number >= 0:
                return number
    return -1


@numba.njit
def give_back(free, number, trip):
    """Put a trip number on the free list, which is returned as it is now."""
    if number[FREE] == len(free):
        free = xs.grow(free, 2 * len(free))
    free[number[FREE]] = trip
    number[FREE] += 1
    return free


@numba.njit
def free_leftovers(state, reports, free, time):
    """Trips whose vehicle did not report again within 30 seconds are over: free their numbers.

    Clears the seconds that are out of reach and returns the oldest report that is not.
    """
    number, base, count, second = state.number, state.base, state.count, state.second
    oldest = number[COUNT]
    for s in range(RING):
        if second[s] > number[EXPIRED] and second[s] < time - PERIOD:
            for k in range(count[s]):
                report = reports[(base[s] + k) & (len(reports) - 1)]
                if report.taken == 0:
                    report.taken = 1
                    free = give_back(free, number, report.trip)
        if second[s] <= time - RING:
            count[s] = 0
        else:
            oldest = min(oldest, base[s])
    number[EXPIRED] = max(number[EXPIRED], time - PERIOD - 1)
    return free, oldest


@numba.njit
def begin_second(state, time, rows):
    """Make room for a second's reports; the ring, the tables and the free list as they are now."""
    number, base, count, second = state.number, state.base, state.count, state.second
    reports, table = state.report, state.table
    free, oldest = free_leftovers(state, reports, state.free, time)
    while number[COUNT] + rows - oldest > len(reports):
        reports = larger_ring(reports, oldest, number[COUNT])
    s, size = time & (RING - 1), len(table) // RING
    if second[s] != time:
        second[s], base[s], count[s] = time, number[COUNT], 0
        table[s * size : (s + 1) * size] = 0
    if 2 * (count[s] + rows) > size:
        table = larger_tables(table, reports, base, count, count[s] + rows)
    return reports, table, free


@numba.njit
def average_gain(reports, mask, report, earlier, spd):
    """What a report adds to the sum of its segment's vehicle averages; whether it is a new vehicle.

    Follows the vehicle's reports of this minute back to the last one from the same segment.
    """
    report.link = earlier
    while earlier >= 0:
        other = reports[earlier & mask]
        if other.key == report.key:
            report.sum = other.sum + spd
            report.reports = other.reports + 1
            return report.sum / report.reports - other.sum / other.reports, 0
        earlier = other.link
    report.sum = spd
    report.reports = 1
    return float(spd), 1


@numba.njit(inline="always")
def place_of(key, lane, pos):
    """A position in a lane of a direction of an expressway, as one number."""
    return (((key // SEGMENTS) * 8 + lane) << 20) + pos


@numba.njit
def note(events, happened, place, vid, until):
    """Add an event; the events as they are now."""
    if 3 * happened == len(events):
        events = np.concatenate((events, np.empty_like(events)))
    events[3 * happened], events[3 * happened + 1] = place, vid
    events[3 * happened + 2] = until
    return events


@xs.kernel(state=STATE, out=VEHICLE_OUT)
def vehicles(
    time, vid, spd, xway, lane_dir_seg, pos, origin, request, rejected, standing, lasting, state,
    out,
):  # fmt: skip
    """Trips, crossings and stopped cars: a trip goes on exactly 30 s after its last report.

    Rule set `paper`: `standing` 0, cars stop in lanes 1 to 3 at any speed, and for `lasting` = 30 s
    from each report. `brandeis`: `standing` 1, only reports of speed 0 count, in any lane.
    """
    n = len(vid)
    number, base, count, second = state.number, state.base, state.count, state.second
    reports, table, free = begin_second(state, time, n)
    xway_keys, xway_slots = state.xway_key, state.xway_slot
    mask, size = len(reports) - 1, len(table) // RING
    s, s30 = time & (RING - 1), (time - PERIOD) & (RING - 1)
    minute_start = time - time % 60
    since = min(minute_start, time - PERIOD + 1)
    keys, trips = np.empty(n, np.int32), np.empty(n, np.int32)
    flags, fresh = np.empty(n, np.int16), np.empty(n, np.int8)
    gains, vids = np.empty(n, np.float64), np.empty(n, np.int32)
    events, happened = np.empty(12, np.int64), 0
    rejects, refused = np.empty(2, np.int64), 0
    implausible, kept = 0, 0
    last_xway, slot = np.int64(-1), np.int64(-1)
    for i in range(n):
        if xway[i] != last_xway:
            last_xway = np.int64(xway[i])
            slot = slot_of(xway_keys, xway_slots, last_xway)
            if slot < 0:
                slot = number[SLOTS]
                xway_keys, xway_slots = add_xway(xway_keys, xway_slots, slot, last_xway)
                number[SLOTS] = slot + 1
        me = np.int64(vid[i])
        at = spread(me, slot, size - 1)
        twice = False
        while table[s * size + at] != 0:
            other = reports[(base[s] + table[s * size + at] - 1) & mask]
            if other.vid == me and other.slot == slot:
                twice = True
                break
            at = (at + 1) & (size - 1)
        if twice:
            if 2 * refused == len(rejects):
                rejects = np.concatenate((rejects, np.empty_like(rejects)))
            rejects[2 * refused], rejects[2 * refused + 1] = origin[i], SECOND_REPORT
            refused += 1
            continue
        count[s] += 1
        table[s * size + at] = count[s]
        report = reports[number[COUNT] & mask]
        number[COUNT] += 1
        lane, seg = lane_dir_seg[i] & 7, lane_dir_seg[i] >> 4
        key = (slot * 2 + ((lane_dir_seg[i] >> 3) & 1)) * SEGMENTS + seg
        counts = spd[i] == 0 if standing else 1 <= lane <= 3
        report.vid, report.slot, report.pos, report.key = me, slot, pos[i], key
        report.time, report.lane, report.taken = time, lane, 0
        report.equal = 1 if counts else 0
        before = -1
        if second[s30] == time - PERIOD:
            before = find(table, reports, base, s30, me, slot)
            if before >= 0 and reports[before & mask].taken != 0:
                before = -1
        if before >= 0:
            last = reports[before & mask]
            last.taken = 1
            report.trip = last.trip
            flag = CROSSED if last.key % SEGMENTS != seg else 0
            if lane != 4 and flag != 0:
                flag |= TRIGGER
            if counts and last.lane == lane and last.pos == pos[i]:
                if last.key // SEGMENTS == key // SEGMENTS:
                    report.equal = min(last.equal + 1, STOPPED_AFTER)
            earlier = before if last.time >= minute_start else -1
        else:
            earlier = find_since(table, reports, base, second, time, since, me, slot)
            if earlier >= 0:
                last = reports[earlier & mask]
                if last.taken == 0:  # its trip ends here, and so does its standing still
                    last.taken = 1
                    free = give_back(free, number, last.trip)
                    if last.equal == STOPPED_AFTER and not standing:
                        place = place_of(last.key, last.lane, last.pos)
                        events = note(events, happened, place, me, time)
                        happened += 1
                if last.time < minute_start:
                    earlier = -1
            if number[FREE] > 0:
                number[FREE] -= 1
                report.trip = free[number[FREE]]
            else:
                report.trip = number[TRIPS]
                number[TRIPS] += 1
            flag = FIRST | (TRIGGER if lane != 4 else 0)
        gains[kept], fresh[kept] = average_gain(reports, mask, report, earlier, np.int64(spd[i]))
        if report.equal == STOPPED_AFTER:
            events = note(events, happened, place_of(key, lane, pos[i]), me, time + lasting)
            happened += 1
        vids[kept], keys[kept], trips[kept] = me, key, report.trip
        flags[kept] = flag | (lane << 4)
        if spd[i] < 0 or spd[i] > 100:
            implausible += 1
        kept += 1
    out.emit_at(
        0, time, vids[:kept], keys[:kept], trips[:kept], flags[:kept], fresh[:kept], gains[:kept],
        events[: 3 * happened], rejects[: 2 * refused], number[TRIPS], implausible,
    )  # fmt: skip
