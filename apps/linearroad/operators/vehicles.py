"""The vehicles on the road: their last reports, and what each new report means.

Vehicles report every 30 seconds, so the batch of 30 seconds ago holds the same vehicles. These
batches *are* the state (`tables.batches`): a report finds its predecessor by joining the new batch
with the old one, and nothing has to be kept for vehicles that have left. Irregular reports, and the
first report of every trip, take a slower path (`tables.road`).

For every report this yields what later operators need: its segment, whether it starts a trip,
crosses into another segment and triggers a notification, and what it adds to the average speed of
its segment in this minute.
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
    EQUAL_AT,
    FATE_AT,
    KEPT_REPORT,
    LANE_AT,
    NEW,
    OVER,
    PERIOD,
    POSITION,
    RING,
    SMALL,
    SUMMED_AT,
    TWICE,
    Batches,
    find,
    free_place,
    joined,
    unfinished,
    vehicle_of,
    with_tables,
)
from linearroad.tables.expressways import XWAYS, slot_of
from linearroad.tables.road import SUM, add_speed, forget, larger_road, phase_of, set_phase
from xstream.kernels.hashtable import EMPTY, clear, with_room

__all__ = ["VEHICLE_OUT", "vehicles"]

STOPPED_AFTER = 4  # equal reports
NEVER = -(2**40)

#: Indices of `number`: expressways, vehicles on the road, sums of this minute, and the minute.
SLOTS, ROAD, SUMS, MINUTE = range(4)

STATE = {
    "number": np.array([0, 0, 0, NEVER], np.int64),
    "report": np.zeros(1 << 10, KEPT_REPORT),
    "base": np.zeros(RING, np.int64),
    "count": np.zeros(RING, np.int64),
    "second": np.full(RING, NEVER, np.int64),
    "ascending": np.ones(RING, np.int8),
    "built": np.zeros(RING, np.int8),
    "table": np.zeros(RING * 16, np.int32),
    "road": np.full(1 << 10, EMPTY, np.int64),
    "sum": np.full(64, np.array((EMPTY, 0), SUM)),
    "xway": XWAYS,
}

#: The reports with their meaning, the index at which the first of them is kept and the number of
#: places (`kept`), cars that stopped or moved on, second reports, and the number of implausible
#: speeds.
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
    """The reports of a second: columns, and the vehicles (`vehicle_of`)."""

    vid: Any
    spd: Any
    where: Any
    vehicle: Any


class Stops(NamedTuple):
    """The stops of a second, with room for all, and their number."""

    row: Any
    count: Any


class Road(NamedTuple):
    """The tables of vehicles on the road and of this minute's sums; `number` is the state's."""

    vehicles: Any
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
def add_to_sums(road, report):
    """Add the speeds of a report and its predecessor to this minute's sums, if not yet counted."""
    if (report.bits >> SUMMED_AT) & 1:
        return
    road.number[SUMS] += add_speed(road.sum, report.vid, report.key, report.spd)[1]
    if report.key2 >= 0:
        road.number[SUMS] += add_speed(road.sum, report.vid, report.key2, report.spd2)[1]


@numba.njit
def end_trips(reports, gone, road, this_minute):
    """Remove vehicles whose last reports these are; returns the sums, which may have moved."""
    sums = road.sum
    if this_minute:
        sums = with_room(sums, road.number[SUMS] + 2 * len(gone))
    road = Road(road.vehicles, sums, road.number)
    for k in gone:
        forget(road.vehicles, vehicle_of(reports[k]))
        road.number[ROAD] -= 1
        if this_minute:
            add_to_sums(road, reports[k])
    return sums


@numba.njit
def begin_second(state, time):
    """End the trips that are overdue; returns the minute's sums, which may have moved."""
    number, sums = state.number, state.sum
    if time // 60 != number[MINUTE]:
        number[MINUTE], number[SUMS] = time // 60, 0
        clear(sums)
    for s in range(RING):
        if NEVER < state.second[s] < time - PERIOD:
            gone = np.empty(state.count[s], np.int32)
            end = state.base[s] + state.count[s]
            many = unfinished(state.report, state.base[s], end, gone)
            this_minute = state.second[s] >= time - time % 60
            sums = end_trips(state.report, gone[:many], Road(state.road, sums, number), this_minute)
            state.count[s], state.second[s] = 0, NEVER
    return sums


@numba.njit
def with_place(state, time, rows):
    """Find a place for this second's reports; returns the reports, which may have moved."""
    s, reports = time & (RING - 1), state.report
    at = free_place(state.base, state.count, len(reports), rows)
    if at < 0:
        at = len(reports)
        reports = xs.grow(reports, at + max(rows, at // 16))
    state.second[s], state.base[s], state.count[s], state.built[s] = time, at, 0, 0
    return reports


@numba.njit
def vehicles_of(state, vid, xway):
    """The vehicles that report (`vehicle_of`), and whether they are in ascending order."""
    number, xways = state.number, state.xway
    found, ascending, begin = np.empty(len(vid), np.int64), True, 0
    last = np.int64(-1)
    while begin < len(vid):
        this = np.int64(xway[begin])
        slot, xways = slot_of(xways, number[SLOTS], this)
        number[SLOTS] = max(number[SLOTS], slot + 1)
        at = begin
        while at < len(vid) and xway[at] == this:
            found[at] = (slot << 32) + vid[at]
            ascending &= found[at] > last
            last = found[at]
            at += 1
        begin = at
    return found, ascending


@numba.njit
def start_trips(batches, road, time, vehicle, links, standing, stops):
    """Put vehicles without a predecessor on the road.

    A vehicle that reported less than 30 s ago ends that trip, and no longer stands.
    """
    phase = time % PERIOD
    for i in range(len(links)):
        if links[i] != NEW:
            continue
        before = phase_of(road.vehicles, vehicle[i])
        if before == phase:
            links[i] = TWICE
            continue
        road.number[ROAD] += set_phase(road.vehicles, vehicle[i], phase)
        if before < 0:
            continue
        earlier = time - (time - before) % PERIOD
        last = batches.report[find(batches, earlier & (RING - 1), vehicle[i])]
        if earlier >= time - time % 60:
            add_to_sums(road, last)
        last.bits |= OVER << FATE_AT
        if (last.bits >> EQUAL_AT) & SMALL == STOPPED_AFTER and not standing:
            where = place_of(last.key, (last.bits >> LANE_AT) & SMALL, last.bits & POSITION)
            note(stops, where, last.vid, time)


@numba.njit(inline="always")
def equal_reports(last, key, lane, pos):
    """The number of consecutive reports from the same place; `last` is the previous report."""
    if last.bits & POSITION != pos or (last.bits >> LANE_AT) & SMALL != lane:
        return 1
    if last.key // SEGMENTS != key // SEGMENTS:
        return 1
    return min(((last.bits >> EQUAL_AT) & SMALL) + 1, STOPPED_AFTER)


@numba.njit
def keep_reports(reports, here, same_minute, rule, road, second, links, meant, stops):
    """Keep the reports of a second from index `here` on, and fill in what each of them means.

    `rule`: whether only cars with speed 0 stand, and until when cars that stop now stand.
    """
    standing, until = rule
    vid, spd, where, sums = second.vid, second.spd, second.where, road.sum
    for i in range(len(vid)):
        lane, seg, pos = lane_of(where[i]), seg_of(where[i]), pos_of(where[i])
        key = ((second.vehicle[i] >> 32) * 2 + dir_of(where[i])) * SEGMENTS + seg
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
            road.number[SUMS] += new
        report.vid, report.key, report.spd = vid[i], key, spd[i]
        report.bits = pos | (lane << LANE_AT) | (equal << EQUAL_AT) | (is_summed << SUMMED_AT)
        if equal == STOPPED_AFTER:
            note(stops, place_of(key, lane, pos), vid[i], until)
        meaning = meant[i]
        meaning.vid, meaning.key, meaning.link = vid[i], key, links[i]
        meaning.actions, meaning.fresh, meaning.gain = flag | (lane << LANE_SHIFT), new, gain


@numba.njit
def second_reports(links, origin):
    """Rejects for reports that are TWICE."""
    many = 0
    for i in range(len(links)):
        many += links[i] == TWICE
    rejects, at = np.empty(many, REJECT), 0
    for i in range(len(links) if many else 0):
        if links[i] == TWICE:
            rejects[at].origin, rejects[at].reason = origin[i], SECOND_REPORT
            at += 1
    return rejects


@numba.njit
def implausible_speeds(spd):
    """The number of implausible speeds."""
    many = 0
    for i in range(len(spd)):
        many += (spd[i] < 0) | (spd[i] > 100)
    return many


@numba.njit
def with_vehicles(road, number, starts):
    """The table of vehicles on the road with room for `starts` more: at most 85 % full."""
    while 20 * (number[ROAD] + starts) > 17 * len(road):
        road = larger_road(road)
    return road


@xs.kernel(state=STATE, out=VEHICLE_OUT)
def vehicles(time, vid, spd, xway, where, origin, last, rule, state, out):
    """Trips, crossings and stopped cars: a trip continues with a report exactly 30 s later.

    `rule`: whether only cars with speed 0 stand, in any lane (`brandeis`), or those in lanes 1 to 3
    at any speed (`paper`); and for how many seconds after a report a car still stands.
    """
    standing, lasting = rule[0], rule[1]
    number, s, s30 = state.number, time & (RING - 1), (time - PERIOD) & (RING - 1)
    sums = begin_second(state, time)
    reports = with_place(state, time, len(vid))
    vehicle, ascending = vehicles_of(state, vid, xway)
    batches = Batches(
        reports, state.base, state.count, state.ascending, state.built, state.table
    )  # fmt: skip
    links = np.empty(len(vid), np.int32)
    gone, many, starts = np.empty(state.count[s30], np.int32), 0, len(vid)
    same_minute, regular = time % 60 >= PERIOD, state.second[s30] == time - PERIOD
    if regular:
        starts, many, batches = joined(batches, s30, vehicle, ascending, links, gone)
    else:
        links[:] = NEW
    on_road = with_vehicles(state.road, number, starts)
    road = Road(on_road, with_room(sums, number[SUMS] + 2 * starts), number)
    stops = Stops(np.empty(2 * len(vid), STOP), np.zeros(1, np.int64))
    if starts > 0:
        if not state.ascending.all():
            batches = with_tables(batches)
        start_trips(batches, road, time, vehicle, links, standing, stops)
    rejects = second_reports(links, origin)
    vids = vid
    if len(rejects) > 0:
        good = links != TWICE
        vids, spd, where = vid[good], spd[good], where[good]
        vehicle, links = vehicle[good], links[good]
    second = Second(vids, spd, where, vehicle)
    n, here = len(links), state.base[s]
    # A vehicle whose last report is in this minute's sums may need a second entry there.
    more = starts + (min(n, number[SUMS]) if same_minute else 0)
    road = Road(on_road, with_room(road.sum, number[SUMS] + more), number)
    meant, until = np.empty(n, REPORT), (standing, time + lasting)
    keep_reports(reports, here, same_minute, until, road, second, links, meant, stops)
    state.count[s], state.ascending[s] = n, ascending
    if regular:
        end_trips(reports, gone[:many], road, same_minute)
        state.count[s30], state.second[s30] = 0, NEVER
    out.emit_at(
        0, time, last, meant, np.array([here, len(reports)]), stops.row[: stops.count[0]], rejects,
        implausible_speeds(second.spd),
    )  # fmt: skip
