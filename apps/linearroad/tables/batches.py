"""The reports of the last seconds: one batch a second, each in one piece of a common array.

Vehicles report every 30 seconds, so the batch of 30 seconds ago holds the vehicles of this one.
A batch whose vehicles are in ascending order is searched by halving and joined by merging; any
other gets a hash table when it is first needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs

__all__ = ["KEPT_REPORT", "PERIOD", "RING", "Batches", "find", "free_place", "whose", "with_room"]

RING = 32  # seconds that are kept, a power of two above the period
PERIOD = 30  # seconds between two reports of a trip
ROAD_KEYS = 200  # segments of both directions of an expressway

#: A report: its segment and speed, those of the report before in the same minute (key -1: there
#: is none), and the small fields packed into `bits` (see `vehicles`).
KEPT_REPORT = np.dtype(
    [("vid", "i4"), ("key", "i4"), ("spd", "i4"), ("key2", "i4"), ("spd2", "i4"), ("bits", "i4")],
    align=True,
)


class Batches(NamedTuple):
    """All batches: the reports, and for each second where its are, how many, whether vehicles
    ascend, and whether its part of the hash tables is built."""

    report: Any
    base: Any
    count: Any
    ascending: Any
    built: Any
    table: Any


@numba.njit(inline="always")
def whose(report):
    """A vehicle on an expressway as one number."""
    return (np.int64(report.key // ROAD_KEYS) << 32) + report.vid


@numba.njit(inline="always")
def spread(vehicle, mask):
    """Where a vehicle hashes to."""
    return ((vehicle * -7046029254386353131) >> 33) & mask


@numba.njit
def free_place(base, count, size, rows):
    """Where `rows` reports fit between the batches, or -1: there, or behind one of them."""
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
def fill_table(table, begin, size, reports, base, count):
    """A hash table of a batch: where in the batch each vehicle is, from 1."""
    table[begin : begin + size] = 0
    for k in range(count):
        at = spread(whose(reports[base + k]), size - 1)
        while table[begin + at] != 0:
            at = (at + 1) & (size - 1)
        table[begin + at] = k + 1


@numba.njit
def with_room(batches):
    """Batches with tables for every second; those that were built are given up when they grow."""
    size, table = len(batches.table) // RING, batches.table
    largest = np.max(batches.count)
    if 2 * largest > size:
        while size < 2 * largest:
            size *= 2
        table = xs.grow(table, RING * size)
        batches.built[:] = 0
    return Batches(
        batches.report, batches.base, batches.count, batches.ascending, batches.built, table
    )  # fmt: skip


@numba.njit
def find_hashed(table, begin, size, reports, base, vehicle):
    """The place of a vehicle's report in a batch with a table, or -1."""
    at = spread(vehicle, size - 1)
    while table[begin + at] != 0:
        place = base + table[begin + at] - 1
        if whose(reports[place]) == vehicle:
            return place
        at = (at + 1) & (size - 1)
    return -1


@numba.njit
def find_halving(reports, base, count, vehicle):
    """The place of a vehicle's report in an ascending batch, or -1."""
    low, high = base, base + count
    while low < high:
        middle = (low + high) >> 1
        if whose(reports[middle]) < vehicle:
            low = middle + 1
        else:
            high = middle
    return low if low < base + count and whose(reports[low]) == vehicle else -1


@numba.njit
def find(batches, s, vehicle):
    """The place of a vehicle's report in second `s`, or -1. The tables have room for it."""
    base, count = batches.base[s], batches.count[s]
    if batches.ascending[s]:
        return find_halving(batches.report, base, count, vehicle)
    size = len(batches.table) // RING
    if not batches.built[s]:
        fill_table(batches.table, s * size, size, batches.report, base, count)
        batches.built[s] = 1
    return find_hashed(batches.table, s * size, size, batches.report, base, vehicle)
