"""The vehicles on the road: who reported when, and what each report means.

Vehicles report every 30 seconds, so the batch of 30 seconds ago holds the same vehicles. Those
batches *are* the state (`batches`): a report finds its predecessor by going through the old batch
as it goes through the new one, and nothing has to be kept for vehicles that have left. What is not
regular, and the first report of every trip, goes a longer way (`ontheroad`).

Per report this yields what the operators behind need: its segment, whether it starts a trip,
crosses into another segment and triggers a notification, and what it adds to its segment's
average of this minute.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from linearroad.operators.check import dir_of, lane_of, pos_of, seg_of
from linearroad.schema import (
    CROSSED,
    FIRST,
    LANE_SHIFT,
    REJECT,
    REPORT,
    SECOND_REPORT,
    SEGMENTS,
    STOP,
    TRIGGER,
    column,
)
from linearroad.tables.batches import (
    KEPT_REPORT,
    PERIOD,
    RING,
    ROAD_KEYS,
    Batches,
    find,
    free_place,
    whose,
    with_room,
)
from linearroad.tables.expressways import add_xway, slot_of
from linearroad.tables.road import (
    SUM,
    add_speed,
    forget,
    known_phase,
    larger_minute,
    larger_road,
    set_phase,
)

__all__ = ["VEHICLE_OUT", "vehicles"]

STOPPED_AFTER = 4  # equal reports
NEVER = -(2**40)

#: A report's `bits`: position, lane, how many equal reports (up to 4), whether this minute's
#: speeds are in the minute's sums, and what became of it: the next report of its trip came
#: (GOES_ON), or another one, or none (OVER).
LANE_AT, EQUAL_AT, SUMMED_AT, FATE_AT = 20, 23, 26, 27
POSITION, SMALL = (1 << LANE_AT) - 1, 7
GOES_ON, OVER = 1, 2

#: slots: how many expressways; road: how many vehicles are on it; sums: how many this minute;
#: minute: which one.
SLOTS, ROAD, SUMS, MINUTE = range(4)

#: Instead of where the last report is: a trip starts; a second report of one second.
NEW, TWICE = -1, -2

STATE = {
    "number": np.array([0, 0, 0, NEVER], np.int64),
    "report": np.zeros(1 << 10, KEPT_REPORT),
    "base": np.zeros(RING, np.int64),
    "count": np.zeros(RING, np.int64),
    "second": np.full(RING, NEVER, np.int64),
    "ascending": np.ones(RING, np.int8),
    "built": np.zeros(RING, np.int8),
    "table": np.zeros(RING * 16, np.int32),
    "road_vid": np.full(1 << 10, -1, np.int32),
    "road_phase": np.zeros(1 << 10, np.int32),
    "sum": np.zeros(64, SUM),
    "xway_key": np.full(16, -1, np.int64),
    "xway_slot": np.zeros(16, np.int64),
}

#: What comes out: the reports with their meaning, where the first of them is kept and how many
#: places there are (`kept`), cars that stand or no longer do, second reports, and how many speeds
#: no car drives at.
VEHICLE_OUT = {
    "time": int,
    "last": bool,
    "report": column(REPORT),
    "kept": column("int64"),
    "stop": column(STOP),
    "reject": column(REJECT),
    "implausible": int,
}


class Second(NamedTuple):
    """The reports of a second as they came: columns, and whose they are (`whose`)."""

    vid: Any
    spd: Any
    where: Any
    number: Any


class Stops(NamedTuple):
    """The stops of a second, with room for all, and how many there are."""

    row: Any
    count: Any


class Road(NamedTuple):
    """The tables of vehicles on the road and of this minute, as they are now."""

    vid: Any
    phase: Any
    sum: Any
    number: Any


@numba.njit(inline="always")
def place_of(key, lane, pos):
    """A position in a lane of a direction of an expressway, as one number."""
    return (((key // SEGMENTS) * 8 + lane) << 20) + pos


@numba.njit(inline="always")
def note(stops, place, vid, until):
    """Add a stop; there is room for it."""
    stop = stops.row[stops.count[0]]
    stop.place, stop.vid, stop.until = place, vid, until
    stops.count[0] += 1


@numba.njit
def roomy(sums, number, more):
    """The minute's sums with room for `more`."""
    while 4 * (number[SUMS] + more) > 3 * len(sums):
        sums = larger_minute(sums)
    return sums


@numba.njit
def summed(sums, number, report):
    """Enter what a report, and the one before it, say of this minute, unless that was done."""
    if (report.bits >> SUMMED_AT) & 1:
        return
    number[SUMS] += add_speed(sums, report.vid, report.key, report.spd)[1]
    if report.key2 >= 0:
        number[SUMS] += add_speed(sums, report.vid, report.key2, report.spd2)[1]


@numba.njit
def left_behind(reports, begin, end, gone):
    """List the reports of a batch that nothing has become of; how many there are."""
    many = 0
    for k in range(begin, end):
        if reports[k].bits >> FATE_AT == 0:
            gone[many] = k
            many += 1
    return many


@numba.njit
def over(reports, gone, road, this_minute):
    """Trips whose last reports these are have ended; the minute's sums as they are now."""
    number, sums = road.number, road.sum
    if this_minute:
        sums = roomy(sums, number, 2 * len(gone))
    for k in gone:
        report = reports[k]
        forget(road.vid, road.phase, report.vid, report.key // ROAD_KEYS)
        number[ROAD] -= 1
        if this_minute:
            summed(sums, number, report)
    return sums


@numba.njit
def begin_second(state, time):
    """Let go of what is out of reach; the minute's sums as they are now."""
    number, sums = state.number, state.sum
    if time // 60 != number[MINUTE]:
        number[MINUTE], number[SUMS] = time // 60, 0
        for i in range(len(sums)):
            sums[i].tally = 0
    for s in range(RING):
        if NEVER < state.second[s] < time - PERIOD:
            gone = np.empty(state.count[s], np.int32)
            end = state.base[s] + state.count[s]
            many = left_behind(state.report, state.base[s], end, gone)
            this_minute = state.second[s] >= time - time % 60
            road = Road(state.road_vid, state.road_phase, sums, number)
            sums = over(state.report, gone[:many], road, this_minute)
            state.count[s], state.second[s] = 0, NEVER
    return sums


@numba.njit
def room_for(state, time, rows):
    """A place for this second's reports; the reports as they are now."""
    s, reports = time & (RING - 1), state.report
    at = free_place(state.base, state.count, len(reports), rows)
    if at < 0:
        at = len(reports)
        reports = xs.grow(reports, at + max(rows, at // 16))
    state.second[s], state.base[s], state.count[s], state.built[s] = time, at, 0, 0
    return reports


@numba.njit
def vehicle_numbers(state, vid, xway):
    """Who reports, as `whose` says it, and whether they come in ascending order."""
    number, keys, slots = state.number, state.xway_key, state.xway_slot
    numbers, ascending, begin = np.empty(len(vid), np.int64), True, 0
    last = np.int64(-1)
    while begin < len(vid):
        this = np.int64(xway[begin])
        slot = slot_of(keys, slots, this)
        if slot < 0:
            slot = number[SLOTS]
            keys, slots = add_xway(keys, slots, slot, this)
            number[SLOTS] = slot + 1
        at = begin
        while at < len(vid) and xway[at] == this:
            numbers[at] = (slot << 32) + vid[at]
            ascending &= numbers[at] > last
            last = numbers[at]
            at += 1
        begin = at
    return numbers, ascending


@numba.njit
def merge_join(numbers, reports, begin, end, links, gone):
    """Predecessors of ascending vehicles in an ascending batch; how many have none, and how many of
    the batch are `gone`. No report is marked here: the caller knows the outcome when it is done."""
    old, starts, many = begin, 0, 0
    for i in range(len(numbers)):
        me = numbers[i]
        links[i] = NEW
        while old < end:
            other = whose(reports[old])
            if other > me:
                break
            if reports[old].bits >> FATE_AT == 0:
                if other == me:
                    links[i] = old
                else:
                    gone[many] = old
                    many += 1
            old += 1
            if other == me:
                break
        starts += links[i] == NEW
    return starts, many + left_behind(reports, old, end, gone[many:])


@numba.njit
def hash_join(numbers, batches, s30, links, gone):
    """The same for vehicles in any order, by marks. The second of two is TWICE."""
    starts, reports = 0, batches.report
    for i in range(len(numbers)):
        old = find(batches, s30, numbers[i])
        links[i] = NEW
        if old >= 0:
            fate = reports[old].bits >> FATE_AT
            if fate == 0:
                reports[old].bits |= GOES_ON << FATE_AT
                links[i] = old
            elif fate == GOES_ON:
                links[i] = TWICE
        starts += links[i] == NEW
    begin = batches.base[s30]
    return starts, left_behind(reports, begin, begin + batches.count[s30], gone)


@numba.njit
def start_trips(batches, road, time, vids, numbers, links, standing, stops):
    """Those that have no predecessor are on the road now.

    A vehicle that reported less than 30 s ago ends that trip, and its standing still.
    """
    number, phase = road.number, time % PERIOD
    for i in range(len(links)):
        if links[i] != NEW:
            continue
        vid, slot = vids[i], numbers[i] >> 32
        before = known_phase(road.vid, road.phase, vid, slot)
        if before == phase:
            links[i] = TWICE
            continue
        number[ROAD] += set_phase(road.vid, road.phase, vid, slot, phase)
        if before < 0:
            continue
        earlier = time - (time - before) % PERIOD
        last = batches.report[find(batches, earlier & (RING - 1), numbers[i])]
        if earlier >= time - time % 60:
            summed(road.sum, number, last)
        last.bits |= OVER << FATE_AT
        if (last.bits >> EQUAL_AT) & SMALL == STOPPED_AFTER and not standing:
            where = place_of(last.key, (last.bits >> LANE_AT) & SMALL, last.bits & POSITION)
            note(stops, where, vid, time)


@numba.njit(inline="always")
def equal_reports(last, key, lane, pos):
    """How many reports in a row say that a vehicle is where it is; `last` is the one before."""
    if last.bits & POSITION != pos or (last.bits >> LANE_AT) & SMALL != lane:
        return 1
    if last.key // SEGMENTS != key // SEGMENTS:
        return 1
    return min(((last.bits >> EQUAL_AT) & SMALL) + 1, STOPPED_AFTER)


@numba.njit
def take_in(reports, here, same_minute, rule, road, second, links, meant, stops):
    """Keep the reports from place `here` on, and say what each of them means.

    `rule`: whether only cars with speed 0 stand, and until when those of this second do.
    """
    standing, until = rule
    vid, spd, where = second.vid, second.spd, second.where
    number, sums, numbers = road.number, road.sum, second.number
    for i in range(len(vid)):
        lane, seg, pos = lane_of(where[i]), seg_of(where[i]), pos_of(where[i])
        key = ((numbers[i] >> 32) * 2 + dir_of(where[i])) * SEGMENTS + seg
        report, speed = reports[here + i], np.int64(spd[i])
        counts = speed == 0 if standing else 1 <= lane <= 3
        equal, is_summed = 1 if counts else 0, 1
        report.key2 = -1
        gain, new = np.float64(speed), 1
        if links[i] == NEW:
            flag = FIRST | (TRIGGER if lane != 4 else 0)
        else:
            last = reports[links[i]]
            if counts:
                equal = equal_reports(last, key, lane, pos)
            flag = CROSSED if last.key % SEGMENTS != seg else 0
            if flag != 0 and lane != 4:
                flag |= TRIGGER
            is_summed = 0
            if same_minute:
                is_summed = (last.bits >> SUMMED_AT) & 1
                report.key2, report.spd2 = last.key, last.spd
                if last.key == key:
                    gain, new = (last.spd + speed) / 2 - last.spd, 0
        if is_summed:
            gain, new = add_speed(sums, vid[i], key, speed)
            number[SUMS] += new
        report.vid, report.key, report.spd = vid[i], key, spd[i]
        report.bits = pos | (lane << LANE_AT) | (equal << EQUAL_AT) | (is_summed << SUMMED_AT)
        if equal == STOPPED_AFTER:
            note(stops, place_of(key, lane, pos), vid[i], until)
        meaning = meant[i]
        meaning.vid, meaning.key, meaning.link = vid[i], key, links[i]
        meaning.flags, meaning.fresh, meaning.gain = flag | (lane << LANE_SHIFT), new, gain


@numba.njit
def second_reports(links, origin):
    """Rejects for the reports that are TWICE."""
    many = 0
    for i in range(len(links)):
        many += links[i] == TWICE
    rejects = np.empty(many, REJECT)
    at = 0
    for i in range(len(links) if many else 0):
        if links[i] == TWICE:
            rejects[at].origin, rejects[at].reason = origin[i], SECOND_REPORT
            at += 1
    return rejects


@numba.njit
def implausible_speeds(spd):
    """How many speeds no car drives at."""
    many = 0
    for i in range(len(spd)):
        many += (spd[i] < 0) | (spd[i] > 100)
    return many


@numba.njit
def joined(batches, s30, numbers, ascending, links, gone):
    """Predecessors in the batch of 30 seconds ago: how many reports start trips, how many of the
    batch are gone, and the batches as they are now."""
    if ascending and batches.ascending[s30]:
        begin = batches.base[s30]
        end = begin + batches.count[s30]
        starts, many = merge_join(numbers, batches.report, begin, end, links, gone)
    else:
        batches = with_room(batches)
        starts, many = hash_join(numbers, batches, s30, links, gone)
    return starts, many, batches


@xs.kernel(state=STATE, out=VEHICLE_OUT)
def vehicles(time, vid, spd, xway, where, origin, last, rule, state, out):
    """Trips, crossings and stopped cars: a trip goes on exactly 30 s after its last report.

    `rule` is whether only cars with speed 0 stand, in any lane (`brandeis`), or those in lanes 1 to
    3 at any speed (`paper`); and how many seconds of standing still follow from a report.
    """
    standing, lasting = rule[0], rule[1]
    number, s, s30 = state.number, time & (RING - 1), (time - PERIOD) & (RING - 1)
    sums = begin_second(state, time)
    reports = room_for(state, time, len(vid))
    numbers, ascending = vehicle_numbers(state, vid, xway)
    batches = Batches(
        reports, state.base, state.count, state.ascending, state.built, state.table
    )  # fmt: skip
    links = np.empty(len(vid), np.int32)
    gone, many, starts = np.empty(state.count[s30], np.int32), 0, len(vid)
    same_minute, regular = time % 60 >= PERIOD, state.second[s30] == time - PERIOD
    if regular:
        starts, many, batches = joined(batches, s30, numbers, ascending, links, gone)
    else:
        links[:] = NEW
    road_vids, road_phases = state.road_vid, state.road_phase
    while 20 * (number[ROAD] + starts) > 17 * len(road_vids):
        road_vids, road_phases = larger_road(road_vids, road_phases)
    road = Road(road_vids, road_phases, roomy(sums, number, 2 * starts), number)
    stops = Stops(np.empty(2 * len(vid), STOP), np.zeros(1, np.int64))
    if starts > 0:
        if not state.ascending.all():
            batches = with_room(batches)
        start_trips(batches, road, time, vid, numbers, links, standing, stops)
    rejects = second_reports(links, origin)
    vids = vid
    if len(rejects) > 0:
        good = links != TWICE
        vids, spd, where = vid[good], spd[good], where[good]
        numbers, links = numbers[good], links[good]
    second = Second(vids, spd, where, numbers)
    n, here = len(links), state.base[s]
    # A vehicle whose last report is in the sums of this minute has an entry there, and may need
    # one more.
    more = starts + (min(n, number[SUMS]) if same_minute else 0)
    road = Road(road_vids, road_phases, roomy(road.sum, number, more), number)
    meant = np.empty(n, REPORT)
    until = (standing, time + lasting)
    take_in(reports, here, same_minute, until, road, second, links, meant, stops)
    state.count[s], state.ascending[s] = n, ascending
    if regular:
        over(reports, gone[:many], road, same_minute)
        state.count[s30], state.second[s30] = 0, NEVER
    kept = np.array([here, len(reports)])
    out.emit_at(
        0, time, last, meant, kept, stops.row[: stops.count[0]], rejects,
        implausible_speeds(second.spd),
    )  # fmt: skip
