"""The vehicles on the road: their last reports, and what each new report means.

Vehicles report every 30 seconds, so the batch of 30 seconds ago holds the same vehicles. These
batches *are* the state (`tables.batches`): a report finds its predecessor by joining the new batch
with the old one, and nothing has to be kept for vehicles that have left. Only a vehicle that has no
report there, and is not known to be new, is searched in the batches in between.

For every report this yields what later operators need: its segment, whether it starts a trip,
crosses into another segment and triggers a notification, and what it adds to the average speed of
its segment in this minute.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.operators.meanings import (
    actions_of,
    bits_of,
    exceptions,
    gains_of,
    keys_of,
    odd_speeds,
)
from linearroad.operators.trips import (
    NEVER,
    ODDS,
    SLOTS,
    SUMS,
    Speeds,
    Stops,
    begin_second,
    end_trips,
    is_standing,
    note,
    overdue,
    standing_place,
    start_trips,
    with_stops,
)
from linearroad.schema import (
    FRESH,
    MEANING,
    REJECT,
    SECOND_REPORT,
    STAYS,
    STOP,
    column,
)
from linearroad.tables.batches import (
    NEW,
    PERIOD,
    RING,
    SPEED,
    SPEED2_AT,
    SUMMED_AT,
    TWICE,
    Batches,
    Last,
    Reports,
    free_place,
    joined,
    mark_repeated,
    no_last,
    numbers_of,
    with_tables,
)
from linearroad.tables.expressways import XWAYS, slot_of
from linearroad.tables.overflow import NO_OVERFLOW, keep_wide
from linearroad.tables.speeds import SUM, add_speed, fits, speed_of
from xstream.kernels.hashtable import EMPTY, with_room

__all__ = ["VEHICLE_OUT", "vehicles"]

STATE: dict[str, NDArray[Any]] = {
    "number": np.array([0, -1, 0, 0, NEVER], np.int64),
    "vid": np.zeros(1 << 10, np.int32),
    "where": np.zeros(1 << 10, np.int32),
    "bits": np.zeros(1 << 10, np.int32),
    "slot": np.zeros(1, np.int32),
    "second": np.full(RING, NEVER, np.int64),
    "base": np.zeros(RING, np.int64),
    "count": np.zeros(RING, np.int64),
    "ascending": np.ones(RING, np.int8),
    "built": np.zeros(RING, np.int8),
    "table": np.zeros(RING, np.int32),
    "sum": np.full(64, np.array((EMPTY, 0), SUM)),
    "odd": NO_OVERFLOW,
    "xway": XWAYS,
}

#: The reports with their meaning, the index at which the first of them is kept and the number of
#: places (`kept`), cars that stopped or moved on, second reports, and the number of implausible
#: speeds.
VEHICLE_OUT = {
    "time": int,
    "last": bool,
    **MEANING,
    "gain": column("float64"),
    "kept": column("int64"),
    "stop": column(STOP),
    "reject": column(REJECT),
    "implausible": int,
}


@numba.njit
def kept_reports(state):
    """The reports that are kept; their slots too once there are several expressways."""
    slot = state.slot[:0]
    if state.number[SLOTS] > 1:
        slot = xs.grow(state.slot, len(state.vid))
    return Reports(state.vid, state.where, state.bits, slot)


@numba.njit
def with_place(state, reports, time, rows):
    """Find a place for this second's reports; returns the batches, whose reports may have moved."""
    s, at = time & (RING - 1), free_place(state.base, state.count, len(reports.vid), rows)
    if at < 0:
        at = len(reports.vid)
        size = at + max(rows, at // 16)
        slot = reports.slot
        if len(slot) > 0:
            slot = xs.grow(state.slot, size)
        reports = Reports(
            xs.grow(state.vid, size), xs.grow(state.where, size), xs.grow(state.bits, size), slot
        )
    state.second[s], state.base[s], state.count[s], state.built[s] = time, at, 0, 0
    return Batches(
        reports, state.second, state.base, state.count, state.ascending, state.built, state.table
    )


@numba.njit
def slots_of(state, xway):
    """The slots of expressways; none if there has been only one expressway so far."""
    number, xways, begin = state.number, state.xway, 0
    found = np.empty(len(xway), np.int32)
    while begin < len(xway):
        this = np.int64(xway[begin])
        slot, xways = slot_of(xways, number[SLOTS], this)
        number[SLOTS] = max(number[SLOTS], slot + 1)
        end = begin
        while end < len(xway) and xway[end] == this:
            found[end] = slot
            end += 1
        begin = end
    return found if number[SLOTS] > 1 else found[:0]


@numba.njit
def in_order(vid, slot):
    """Whether vehicles ascend."""
    falls = 0
    for i in range(1, len(vid)):
        falls += vid[i] <= vid[i - 1]
    if falls == 0 or len(slot) == 0:
        ascending = falls == 0
        for i in range(1, len(slot)):
            ascending &= slot[i] >= slot[i - 1]
        return ascending
    for i in range(1, len(vid)):
        if slot[i] < slot[i - 1] or (slot[i] == slot[i - 1] and vid[i] <= vid[i - 1]):
            return False
    return True


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
def apply_exceptions(listed, reports, here, links, meant, speeds, spd, stops, rule):
    """Sum up the speeds of some of the reports from index `here` on, keep those that do not fit,
    and note the cars that stand or no longer do.

    `rule`: as of the kernel, with the second instead of a duration.
    """
    key, actions, gain = meant
    bits, number = reports.bits, speeds.number
    for i in listed:
        k, link, speed = here + np.int64(i), np.int64(links[i]), np.int64(spd[i])
        if not fits(speed):
            number[ODDS] += keep_wide(speeds.odd, 2 * k, speed)
        if (bits[k] >> SPEED2_AT) & SPEED == SPEED:
            before = speed_of(bits, speeds.odd, link)
            number[ODDS] += keep_wide(speeds.odd, 2 * k + 1, before)
            if not actions[i] & FRESH:
                gain[i] = (np.float64(speed) - before) * 0.5
        if (bits[k] >> SUMMED_AT) & 1:
            gain[i], new = add_speed(speeds.sum, reports.vid[k], key[i], speed)
            number[SUMS] += new
            actions[i] = (actions[i] & ~FRESH) | (FRESH if new else 0)
        now, only_changes = is_standing(bits[k]), rule[1]
        if now and not only_changes:
            note(stops, standing_place(reports, k), reports.vid[k], rule[2])
        if only_changes:
            before_stood = link >= 0 and is_standing(bits[link])
            if now and not before_stood:
                note(stops, standing_place(reports, k), reports.vid[k], STAYS)
            if before_stood and not now:
                note(stops, standing_place(reports, link), reports.vid[k], rule[2])


@numba.njit
def keep_reports(batches, s, second, links, last, speeds, stops, rule):
    """Keep the reports of second `s`; returns what each of them means (key, actions and gain) and
    the speeds, which may have moved.

    `rule`: whether only cars with speed 0 stand, whether only changes of who stands are noted, and
    until when cars stand that are noted now.
    """
    vid, spd, where, slot = second
    reports, here, n = batches.report, batches.base[s], len(vid)
    same_minute = batches.second[s] % 60 >= PERIOD
    by_speed, only_changes = rule[0], rule[1]
    reports.vid[here : here + n], reports.where[here : here + n] = vid, where
    for i in range(len(slot)):
        reports.slot[here + i] = slot[i]
    bits = bits_of(where, spd, last, same_minute, by_speed)
    reports.bits[here : here + n] = bits
    key, actions = keys_of(where, slot), actions_of(where, last.where, same_minute)
    gain = gains_of(spd, actions, last.bits)
    listed = exceptions(bits, last, only_changes)
    odd = with_room(speeds.odd, speeds.number[ODDS] + odd_speeds(bits))
    sums = with_room(speeds.sum, speeds.number[SUMS] + len(listed))
    speeds = Speeds(sums, odd, speeds.number)
    apply_exceptions(
        listed, reports, here, links, (key, actions, gain), speeds, spd, stops, rule
    )  # fmt: skip
    return (key, actions, gain), speeds


@xs.kernel(state=STATE, out=VEHICLE_OUT)
def vehicles(time, vid, spd, xway, where, origin, last, rule, state, out):
    """Trips, crossings and stopped cars: a trip continues with a report exactly 30 s later.

    `rule`: whether only cars with speed 0 stand, in any lane (`brandeis`), or those in lanes 1 to 3
    at any speed (`paper`); and for how many seconds after a report a car still stands, or 0 to emit
    only when cars begin and cease to stand.
    """
    by_speed, only_changes, until = rule[0] != 0, rule[1] == 0, time + rule[1]
    number, s, s30 = state.number, time & (RING - 1), (time - PERIOD) & (RING - 1)
    slot = slots_of(state, xway)
    reports = kept_reports(state)
    stops = Stops(np.empty(overdue(state, time), STOP), np.zeros(1, np.int64))
    speeds = Speeds(state.sum, state.odd, number)
    sums = begin_second(state, reports, speeds, time, stops, only_changes)
    batches = with_place(state, reports, time, len(vid))
    links, last_ones = np.empty(len(vid), np.int32), no_last(len(vid))
    ascending = in_order(vid, slot)
    gone, many, starts = np.empty(state.count[s30], np.int32), 0, len(vid)
    same_minute, regular = time % 60 >= PERIOD, state.second[s30] == time - PERIOD
    if regular:
        starts, many, batches = joined(
            batches, s30, vid, slot, ascending, links, last_ones, gone
        )  # fmt: skip
    else:
        links[:] = NEW
    stops = with_stops(stops, len(vid) + starts + many)
    speeds = Speeds(with_room(sums, number[SUMS] + 2 * starts), state.odd, number)
    if starts > 0:
        if not state.ascending.all():
            batches = with_tables(batches)
        who = numbers_of(vid, slot)
        if not ascending:
            mark_repeated(who, links, starts)
        start_trips(batches, speeds, time, who, links, stops, only_changes)
    rejects = second_reports(links, origin)
    vids = vid
    if len(rejects) > 0:
        good = links != TWICE
        vids, spd, where, links = vid[good], spd[good], where[good], links[good]
        last_ones = Last(last_ones.where[good], last_ones.bits[good])
        slot = slot[good] if len(slot) > 0 else slot
    meant, speeds = keep_reports(
        batches, s, (vids, spd, where, slot), links, last_ones, speeds, stops,
        (by_speed, only_changes, until),
    )  # fmt: skip
    state.count[s], state.ascending[s] = len(links), ascending
    if regular:
        left = time if only_changes else np.int64(-1)
        end_trips(batches.report, gone[:many], speeds, same_minute, stops, left)
        state.count[s30], state.second[s30] = 0, NEVER
    kept = np.array([state.base[s], len(batches.report.vid)])
    out.emit_at(
        0, time, last, vids, meant[0], links, meant[1], meant[2], kept,
        stops.row[: stops.count[0]], rejects, implausible_speeds(spd),
    )  # fmt: skip
