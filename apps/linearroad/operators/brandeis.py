"""What only rule set `brandeis` needs: first visits trigger, and the next notification charges.

The validator of 2004 knows no trips. A vehicle is notified once for each segment in the whole run,
and what it was quoted is charged when it is notified again.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.schema import (
    LANE_SHIFT,
    REPORT,
    REQUEST,
    SEGMENTS,
    TOLL,
    TRIGGER,
    column,
)

__all__ = ["later_charges", "visits"]


@numba.njit(inline="always")
def slot_at(keys, key):
    """Where a key is in a table, or would be."""
    mask = len(keys) - 1
    at = ((key * -7046029254386353131) >> 32) & mask
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) & mask
    return at


@numba.njit
def larger(keys, first, second):
    """A table with twice the room, and two values a key."""
    old_keys, old_first, old_second = keys.copy(), first.copy(), second.copy()
    keys = xs.grow(keys, 2 * len(keys))
    first, second = xs.grow(first, 2 * len(first)), xs.grow(second, 2 * len(second))
    keys[:] = -1
    first[:] = 0
    second[:] = 0
    for i in range(len(old_keys)):
        if old_keys[i] != -1:
            at = slot_at(keys, old_keys[i])
            keys[at], first[at], second[at] = old_keys[i], old_first[i], old_second[i]
    return keys, first, second


@xs.kernel(
    state={
        "count": np.zeros(1, np.int64),
        "vehicle": np.full(1024, -1, np.int64),
        "low": np.zeros(1024, np.int64),
        "high": np.zeros(1024, np.int64),
    },
    out={"time": int, "last": bool, "report": column(REPORT), "kept": column("int64")},
)
def visits(time, last, report, kept, state, out):
    """Reports that trigger where a vehicle reports from a segment for the first time, lane 4 aside.

    A bit for each of the 100 segments that a (VID, XWay, Dir) has been in.
    """
    vehicles, low, high, count = state.vehicle, state.low, state.high, state.count
    reports = report.copy()
    for i in range(len(reports)):
        one = reports[i]
        lane = one.flags >> LANE_SHIFT
        one.flags = 0
        if lane == 4:
            continue
        if 3 * (count[0] + 1) > 2 * len(vehicles):
            vehicles, low, high = larger(vehicles, low, high)
        vehicle = (np.int64(one.key) // SEGMENTS << 32) + one.vid
        at = slot_at(vehicles, vehicle)
        if vehicles[at] == -1:
            vehicles[at] = vehicle
            count[0] += 1
        seg = np.int64(one.key) % SEGMENTS
        bits = low if seg < 50 else high
        bit = np.int64(1) << (seg % 50)
        if bits[at] & bit == 0:
            bits[at] |= bit
            one.flags = TRIGGER
    out.emit_at(0, time, last, reports, kept)


@xs.kernel(
    state={
        "count": np.zeros(1, np.int64),
        "vid": np.full(1024, -1, np.int64),
        "quoted": np.zeros(1024, np.int64),
        "second": np.zeros(1024, np.int64),
    },
    out={
        "part": int,
        "time": int,
        "request": column(REQUEST),
        "charge_vid": column("int32"),
        "charge": column("int64"),
    },
)
def later_charges(part, time, request, kind, who, amount, state, out):
    """Charges what was quoted before, at the vehicle's next notification.

    Notifications of one second come at once: none of them is charged for another.
    """
    vids, quoted, second, count = state.vid, state.quoted, state.second, state.count
    charge_vid, charge = np.empty(len(who), np.int32), np.empty(len(who), np.int64)
    charged = 0
    for i in range(len(who)):
        if kind[i] != TOLL:
            continue
        if 3 * (count[0] + 1) > 2 * len(vids):
            vids, quoted, second = larger(vids, quoted, second)
        at = slot_at(vids, np.int64(who[i]))
        if vids[at] == -1:
            vids[at] = who[i]
            second[at] = time
            count[0] += 1
        elif second[at] < time:
            charge_vid[charged], charge[charged] = who[i], quoted[at]
            charged += 1
            quoted[at] = 0
            second[at] = time
        quoted[at] += amount[i]
    out.emit_at(0, part, time, request, charge_vid[:charged], charge[:charged])
