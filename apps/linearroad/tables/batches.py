"""The reports of the last seconds: one batch per second, each in one piece of common arrays.

Vehicles report every 30 seconds, so the batch of 30 seconds ago holds the vehicles of this one.
A batch whose vehicles are in ascending order is searched by bisection and joined by merging. Any
other batch gets a hash table when it is first searched.

A report takes 12 bytes: VID, location, and the packed numbers of `bits`. The expressway is stored
only where there are several, and a speed that does not fit in `tables.speeds`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from linearroad.operators.check import DIR_BITS, LANE_BITS, POS_BITS
from xstream.kernels.hashtable import EMPTY, following, home

__all__ = [
    "PERIOD",
    "RING",
    "Batches",
    "Last",
    "Reports",
    "find",
    "free_place",
    "is_unfinished",
    "joined",
    "latest",
    "mark_repeated",
    "no_last",
    "numbers_of",
    "unfinished",
    "vehicle_at",
    "with_tables",
]

RING = 32  # seconds that are kept, a power of two above the period
PERIOD = 30  # seconds between two reports of a trip

#: `where` of a report is as in `check`; the bits from here on are its segment and direction, and
#: those below its place in a direction: lane and position.
SEGMENT_AT = POS_BITS + LANE_BITS
PLACE = (1 << (SEGMENT_AT + DIR_BITS)) - 1  # direction, lane and position
#: `bits` of a report: its speed and that of the report before it in the same minute; segment and
#: direction of the latter; whether there is one; the number of equal reports minus 1 (up to
#: STANDS); whether this minute's speeds are in the minute's sums; and the fate of the trip: it
#: continued (GOES_ON) or ended (OVER).
SPEED_BITS = 8
SPEED2_AT, SEGMENT2_AT, BEFORE_AT, EQUAL_AT, SUMMED_AT, FATE_AT = 8, 16, 24, 25, 27, 28
SPEED, SEGMENT2 = (1 << SPEED_BITS) - 1, (1 << (BEFORE_AT - SEGMENT2_AT)) - 1
STANDS = 3  # equal reports after the first; also the mask of the field
GOES_ON, OVER = 1, 2

#: Links of reports without a last report: a trip starts; a second report in the same second.
NEW, TWICE = -1, -2
NOWHERE = -1


class Reports(NamedTuple):
    """Kept reports, by field; `slot` is empty where there is only one expressway."""

    vid: Any
    where: Any
    bits: Any
    slot: Any


class Last(NamedTuple):
    """The last report of each vehicle that reports; `where` is NOWHERE if there is none."""

    where: Any
    bits: Any


class Batches(NamedTuple):
    """All batches: the reports, and by second which one it is, where the batch starts, its length,
    whether vehicles ascend, and whether its part of `table` is built.

    The hash tables hold positions in a batch, from 1: 4 bytes per report instead of the 16 of a
    record with a key, and 0 is an empty entry.
    """

    report: Any
    second: Any
    base: Any
    count: Any
    ascending: Any
    built: Any
    table: Any


@numba.njit(inline="always")
def vehicle_at(reports, k):
    """The vehicle of a report on its expressway as one number: slot and VID."""
    if len(reports.slot) == 0:
        return np.int64(reports.vid[k])
    return (np.int64(reports.slot[k]) << 32) + reports.vid[k]


@numba.njit
def numbers_of(vid, slot):
    """The vehicles of reports as `vehicle_at` numbers them."""
    numbers = np.empty(len(vid), np.int64)
    for i in range(len(vid)):
        numbers[i] = vid[i]
    for i in range(len(slot)):
        numbers[i] += np.int64(slot[i]) << 32
    return numbers


@numba.njit(inline="always")
def is_unfinished(bits):
    """Whether the trip of a report has no fate yet."""
    return bits >> FATE_AT == 0


@numba.njit
def free_place(base, count, size, rows):
    """The first index where `rows` reports fit, at 0 or behind a batch; -1 if there is none."""
    for behind in range(-1, RING):
        begin = base[behind] + count[behind] if behind >= 0 else 0
        if begin + rows > size or (behind >= 0 and count[behind] == 0):
            continue
        free = True
        for s in range(RING):
            if count[s] > 0 and base[s] < begin + rows and begin < base[s] + count[s]:
                free = False
                break
        if free:
            return begin
    return -1


@numba.njit
def with_tables(batches):
    """Batches with room for the hash tables of all seconds; tables that move are built again."""
    size, table = len(batches.table) // RING, batches.table
    largest = np.max(batches.count)
    if 2 * largest > size:
        table = xs.grow(table, RING * max(2 * size, 2 * largest))
        batches.built[:] = 0
    return Batches(
        batches.report, batches.second, batches.base, batches.count, batches.ascending,
        batches.built, table,
    )  # fmt: skip


@numba.njit
def build_table(batches, s):
    """Enter the vehicles of a batch into its hash table."""
    size = len(batches.table) // RING
    table = batches.table[s * size : (s + 1) * size]
    table[:] = 0
    for k in range(batches.count[s]):
        at = home(vehicle_at(batches.report, batches.base[s] + k), size)
        while table[at] != 0:
            at = following(at, size)
        table[at] = k + 1
    batches.built[s] = 1


@numba.njit
def find_hashed(batches, s, vehicle):
    """The index of a vehicle's report, by the hash table of its batch, or -1."""
    size, begin = len(batches.table) // RING, batches.base[s]
    table = batches.table[s * size : (s + 1) * size]
    at = home(vehicle, size)
    while table[at] != 0:
        place = begin + table[at] - 1
        if vehicle_at(batches.report, place) == vehicle:
            return place
        at = following(at, size)
    return np.int64(-1)


@numba.njit
def find_sorted(reports, begin, end, vehicle):
    """The index of a vehicle's report in an ascending batch, or -1.

    The loop has no branch that depends on the data, so that several searches overlap.
    """
    low, many = begin, end - begin
    while many > 1:
        half = many >> 1
        low += half if vehicle_at(reports, low + half) <= vehicle else 0
        many -= half
    return low if many == 1 and vehicle_at(reports, low) == vehicle else np.int64(-1)


@numba.njit
def find(batches, s, vehicle):
    """The index of a vehicle's report in batch `s`, or -1. The hash tables have room for it."""
    if batches.ascending[s]:
        begin = batches.base[s]
        return find_sorted(batches.report, begin, begin + batches.count[s], vehicle)
    if not batches.built[s]:
        build_table(batches, s)
    return find_hashed(batches, s, vehicle)


@numba.njit
def latest(batches, time, vehicle):
    """The report of a vehicle on the road that came less than 30 s ago, and its second; or -1."""
    for second in range(time - PERIOD + 1, time):
        s = second & (RING - 1)
        if batches.second[s] == second and batches.count[s] > 0:
            at = find(batches, s, vehicle)
            if at >= 0 and is_unfinished(batches.report.bits[at]):
                return at, np.int64(second)
    return np.int64(-1), np.int64(-1)


@numba.njit
def unfinished(bits, begin, end, base, gone):
    """List the reports of a range whose trips have no fate yet, as indices counted from `base`;
    returns their number."""
    many = 0
    for k in range(begin, end):
        if is_unfinished(bits[k]):
            gone[many] = base + k
            many += 1
    return many


@numba.njit
def equal_run(these, others):
    """The number of equal items at the beginning of two arrays."""
    most, k = min(len(these), len(others)), 0
    while k + 8 <= most:
        differ = 0
        for t in range(8):
            differ |= these[k + t] ^ others[k + t]
        if differ != 0:
            break
        k += 8
    while k < most and these[k] == others[k]:
        k += 1
    return k


@numba.njit
def no_last(many):
    """Last reports for many vehicles, none of which is known yet."""
    return Last(np.full(many, NOWHERE, np.int32), np.zeros(many, np.int32))


@numba.njit
def link_run(links, last, where, bits, begin):
    """Link reports to the batch's from index `begin` on, one by one; returns how many are NEW."""
    fates = 0
    for k in range(len(links)):
        links[k] = begin + k
        fates |= bits[k] >> FATE_AT
    last.where[:], last.bits[:] = where, bits
    starts = 0
    for k in range(len(links) if fates != 0 else 0):
        if not is_unfinished(bits[k]):
            links[k], last.where[k], last.bits[k] = NEW, NOWHERE, 0
            starts += 1
    return starts


@numba.njit
def merge_join(vehicles, others, where, bits, begin, links, last, gone):
    """Join ascending vehicles with those of an ascending batch, which begins at index `begin`;
    returns what `joined` does. `where` and `bits` are those of the batch.

    Vehicles come and go rarely, so most of the work is to find and to link runs that are equal. No
    report is marked here; the caller knows the outcome once the join is complete.
    """
    i, old, n, end, starts, many = 0, 0, len(vehicles), len(others), 0, 0
    while i < n and old < end:
        run = equal_run(vehicles[i:], others[old:])
        ours, theirs = slice(i, i + run), slice(old, old + run)
        some = Last(last.where[ours], last.bits[ours])
        starts += link_run(links[ours], some, where[theirs], bits[theirs], begin + old)
        i, old = i + run, old + run
        while i < n and (old == end or vehicles[i] < others[old]):
            links[i] = NEW
            starts += 1
            i += 1
        while old < end and (i == n or others[old] < vehicles[i]):
            if is_unfinished(bits[old]):
                gone[many] = begin + old
                many += 1
            old += 1
    links[i:] = NEW
    return starts + n - i, many + unfinished(bits, old, end, begin, gone[many:])


@numba.njit
def hash_join(vehicles, batches, s, links, last, gone):
    """The same for vehicles in any order. Reports are marked, so that a second one is noticed."""
    starts, bits = 0, batches.report.bits
    for i in range(len(vehicles)):
        old = find(batches, s, vehicles[i])
        links[i] = NEW
        if old >= 0:
            fate = bits[old] >> FATE_AT
            if fate == 0:
                last.where[i], last.bits[i] = batches.report.where[old], bits[old]
                bits[old] |= GOES_ON << FATE_AT
                links[i] = old
            elif fate == GOES_ON:
                links[i] = TWICE
        starts += links[i] == NEW
    begin = batches.base[s]
    return starts, unfinished(bits, begin, begin + batches.count[s], 0, gone)


@numba.njit
def joined(batches, s, vid, slot, ascending, links, last, gone):
    """Link reports to those of batch `s`: the index of the `last` report, NEW or TWICE.

    Returns the number of new vehicles, the number of reports of the batch without a successor
    (they are listed in `gone`), and the batches, whose hash tables may have moved.
    """
    reports, begin = batches.report, batches.base[s]
    end = begin + batches.count[s]
    if not ascending or not batches.ascending[s]:
        batches = with_tables(batches)
        starts, many = hash_join(numbers_of(vid, slot), batches, s, links, last, gone)
    elif len(slot) == 0:
        starts, many = merge_join(
            vid, reports.vid[begin:end], reports.where[begin:end], reports.bits[begin:end], begin,
            links, last, gone,
        )  # fmt: skip
    else:
        others = numbers_of(reports.vid[begin:end], reports.slot[begin:end])
        starts, many = merge_join(
            numbers_of(vid, slot), others, reports.where[begin:end], reports.bits[begin:end], begin,
            links, last, gone,
        )  # fmt: skip
    return starts, many, batches


@numba.njit
def mark_repeated(vehicles, links, starts):
    """Mark second reports of vehicles that have no last report; `starts` of them are NEW."""
    size = 2 * starts + 1
    seen = np.full(size, EMPTY, np.int64)
    for i in range(len(links)):
        if links[i] != NEW:
            continue
        at = home(vehicles[i], size)
        while seen[at] != EMPTY and seen[at] != vehicles[i]:
            at = following(at, size)
        if seen[at] != EMPTY:
            links[i] = TWICE
        seen[at] = vehicles[i]
