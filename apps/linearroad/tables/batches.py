"""The reports of the last seconds: one batch per second, each in one piece of a common array.

Vehicles report every 30 seconds, so the batch of 30 seconds ago holds the vehicles of this one.
A batch whose vehicles are in ascending order is searched by bisection and joined by merging. Any
other batch gets a hash table when it is first searched.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from xstream.kernels.hashtable import following, home

__all__ = [
    "KEPT_REPORT",
    "PERIOD",
    "RING",
    "Batches",
    "find",
    "free_place",
    "joined",
    "with_tables",
]

RING = 32  # seconds that are kept, a power of two above the period
PERIOD = 30  # seconds between two reports of a trip
ROAD_KEYS = 200  # segments of both directions of an expressway

#: A report: its segment and speed, those of the report before it in the same minute (key2 -1: there
#: is none), and small fields packed into `bits`.
KEPT_REPORT = np.dtype(
    [("vid", "i4"), ("key", "i4"), ("spd", "i4"), ("key2", "i4"), ("spd2", "i4"), ("bits", "i4")],
    align=True,
)
#: `bits`: position, lane, number of equal reports (up to 4), whether this minute's speeds are in
#: the minute's sums, and the fate of the trip: it continued (GOES_ON) or ended (OVER).
LANE_AT, EQUAL_AT, SUMMED_AT, FATE_AT = 20, 23, 26, 27
POSITION, SMALL = (1 << LANE_AT) - 1, 7
GOES_ON, OVER = 1, 2

#: Links of reports without a last report: a trip starts; a second report in the same second.
NEW, TWICE = -1, -2


class Batches(NamedTuple):
    """All batches: the reports, and by second where the batch starts, its length, whether vehicles
    ascend, and whether its part of `table` is built.

    The hash tables hold positions in a batch, from 1: 4 bytes per report instead of the 16 of a
    record with a key, and 0 is an empty entry.
    """

    report: Any
    base: Any
    count: Any
    ascending: Any
    built: Any
    table: Any


@numba.njit(inline="always")
def vehicle_of(report):
    """A vehicle on an expressway as one number: slot and VID."""
    return (np.int64(report.key // ROAD_KEYS) << 32) + report.vid


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
        batches.report, batches.base, batches.count, batches.ascending, batches.built, table
    )  # fmt: skip


@numba.njit
def build_table(batches, s):
    """Enter the vehicles of a batch into its hash table."""
    size = len(batches.table) // RING
    table = batches.table[s * size : (s + 1) * size]
    table[:] = 0
    for k in range(batches.count[s]):
        at = home(vehicle_of(batches.report[batches.base[s] + k]), size)
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
        if vehicle_of(batches.report[place]) == vehicle:
            return place
        at = following(at, size)
    return -1


@numba.njit
def find_sorted(reports, begin, end, vehicle):
    """The index of a vehicle's report in an ascending batch, or -1."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if vehicle_of(reports[middle]) < vehicle:
            low = middle + 1
        else:
            high = middle
    return low if low < end and vehicle_of(reports[low]) == vehicle else -1


@numba.njit
def find(batches, s, vehicle):
    """The index of a vehicle's report in second `s`, or -1. The hash tables have room for it."""
    if batches.ascending[s]:
        begin = batches.base[s]
        return find_sorted(batches.report, begin, begin + batches.count[s], vehicle)
    if not batches.built[s]:
        build_table(batches, s)
    return find_hashed(batches, s, vehicle)


@numba.njit
def unfinished(reports, begin, end, gone):
    """List the reports of a range whose trips have no fate yet; returns their number."""
    many = 0
    for k in range(begin, end):
        if reports[k].bits >> FATE_AT == 0:
            gone[many] = k
            many += 1
    return many


@numba.njit
def merge_join(vehicles, reports, begin, end, links, gone):
    """Join ascending vehicles with an ascending batch; returns what `joined` does.

    No report is marked here; the caller knows the outcome once the join is complete.
    """
    old, starts, many = begin, 0, 0
    for i in range(len(vehicles)):
        me = vehicles[i]
        links[i] = NEW
        while old < end:
            other = vehicle_of(reports[old])
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
    return starts, many + unfinished(reports, old, end, gone[many:])


@numba.njit
def hash_join(vehicles, batches, s, links, gone):
    """The same for vehicles in any order. Reports are marked, so that a second one is noticed."""
    starts, reports = 0, batches.report
    for i in range(len(vehicles)):
        old = find(batches, s, vehicles[i])
        links[i] = NEW
        if old >= 0:
            fate = reports[old].bits >> FATE_AT
            if fate == 0:
                reports[old].bits |= GOES_ON << FATE_AT
                links[i] = old
            elif fate == GOES_ON:
                links[i] = TWICE
        starts += links[i] == NEW
    begin = batches.base[s]
    return starts, unfinished(reports, begin, begin + batches.count[s], gone)


@numba.njit
def joined(batches, s, vehicles, ascending, links, gone):
    """Link reports to those of second `s`: the index of the last report, NEW or TWICE.

    Returns the number of new vehicles, the number of reports of the batch without a successor
    (they are listed in `gone`), and the batches, whose hash tables may have moved.
    """
    if ascending and batches.ascending[s]:
        begin = batches.base[s]
        end = begin + batches.count[s]
        starts, many = merge_join(vehicles, batches.report, begin, end, links, gone)
    else:
        batches = with_tables(batches)
        starts, many = hash_join(vehicles, batches, s, links, gone)
    return starts, many, batches
