"""Rule set `thesis`: the toll of every segment entered, before the discount, and the alerts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from linearroad.operators.check import room
from linearroad.operators.thesis_accidents import REACH, direction_step
from linearroad.operators.thesis_vehicles import EXIT
from linearroad.schema import ALERT, ANSWERS, SEGMENTS, TRIGGER, column

__all__ = ["CREDIT", "ENTERED", "FREE_CARS", "thesis_tolls"]

FREE_SPEED, FREE_CARS = 40, 150
NO_SPEED = -1
#: Instead of EXIT in the actions of an entry: the exit is credited.
CREDIT = EXIT
#: A report that matters to the accounts: what it does (`actions`), the speed that is sent, and the
#: toll without a discount.
ENTERED = np.dtype(
    [("vid", "i4"), ("xway", "i4"), ("speed", "i4"), ("actions", "i4"), ("toll", "i8")]
)


class Known(NamedTuple):
    """Tables by segment: statistics of this minute, and whether there is an accident now."""

    speed: Any
    cars: Any
    accident: Any


@numba.njit
def with_segments(known, needed):
    """Tables with room for `needed` segments."""
    size = len(known.speed)
    if needed <= size:
        return known
    known = Known(room(known.speed, needed), room(known.cars, needed), room(known.accident, needed))
    known.speed[size:] = NO_SPEED
    return known


@numba.njit
def updated(known, report, segment, change):
    """The tables with the statistics and accidents of a second."""
    needed = np.int64(len(segment))
    for i in range(len(report)):
        needed = max(needed, report[i].key + 1)
    for i in range(len(change)):
        needed = max(needed, change[i].key + 1)
    # Whole directions: one looks at the segments beyond those with reports.
    known = with_segments(known, (needed + SEGMENTS - 1) // SEGMENTS * SEGMENTS)
    for k in range(len(segment)):
        known.speed[k], known.cars[k] = segment[k].lav, segment[k].cars
    if len(segment) > 0:
        known.speed[len(segment) :], known.cars[len(segment) :] = NO_SPEED, 0
    for i in range(len(change)):
        known.accident[change[i].key] = change[i].is_on
    return known


@numba.njit
def accident_ahead(accident, key, nearest):
    """Whether there is an accident `nearest` to five segments downstream."""
    step, mile = direction_step(key), key % SEGMENTS
    for away in range(nearest, REACH + 1):
        there = mile + step * away
        if 0 <= there < SEGMENTS and accident[key - mile + there] != 0:
            return True
    return False


@numba.njit
def toll_of(known, key, base):
    """The toll of a segment, before the discount of frequent travellers."""
    above = np.int64(known.cars[key]) - FREE_CARS
    if known.speed[key] >= FREE_SPEED or above <= 0 or accident_ahead(known.accident, key, 0):
        return np.int64(0)
    return np.int64(base) * above * above


@xs.kernel(
    state={
        "speed": np.full(2 * SEGMENTS, NO_SPEED, np.int32),
        "cars": np.zeros(2 * SEGMENTS, np.int32),
        "accident": np.zeros(2 * SEGMENTS, np.int8),
    },
    out=ANSWERS | {"entered": column(ENTERED)},
)
def thesis_tolls(time, last, report, segment, change, alert, base, state, out):
    """The entries and exits of a second for the accounts; its alerts are answers already.

    In an alert, `value` is the direction and the mile of the accident as one number, and `amount`
    its expressway. `base`: the toll per square of a vehicle above 150.
    """
    known = updated(Known(state.speed, state.cars, state.accident), report, segment, change)
    entered, n = np.empty(len(report), ENTERED), 0
    for i in range(len(report)):
        one = report[i]
        actions = np.int32(one.actions)
        if actions & EXIT and not accident_ahead(known.accident, one.key, 1):
            actions ^= EXIT
        if actions == 0:
            continue
        entry = entered[n]
        entry.vid, entry.xway, entry.actions = one.vid, one.xway, actions
        entry.speed, entry.toll = known.speed[one.key], 0
        if actions & TRIGGER:
            entry.toll = toll_of(known, one.key, base)
        n += 1
    m = len(alert)
    kind, who = np.full(m, ALERT, np.int8), np.empty(m, np.int32)
    value, amount = np.empty(m, np.int32), np.empty(m, np.int64)
    for i in range(m):
        who[i], value[i] = alert[i].vid, alert[i].key % (2 * SEGMENTS)
        amount[i] = alert[i].xway
    out.emit_at(0, time, last, kind, who, value, amount, entered[:n])
