"""Toll and accident notifications, and the charges that follow from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from linearroad.schema import (
    ALERT,
    ANSWERS,
    BY_TRIP,
    CROSSED,
    FIRST,
    NO_MINUTE,
    SEGMENTS,
    TOLL,
    TRIGGER,
    column,
)

__all__ = ["tolls"]

REACH = 5  # segments in which an accident matters, including the vehicle's own
FREE_SPEED, FREE_CARS = 40, 50


@numba.njit(inline="always")
def toll_for(above):
    """The toll for a number of cars above FREE_CARS."""
    return 2 * np.int64(above) * np.int64(above)


@numba.njit
def remember(last, before, key, minute):
    """Note an accident minute; only the latest two are needed."""
    if minute > last[key]:
        before[key] = last[key]
        last[key] = minute
    elif minute < last[key] and minute > before[key]:
        before[key] = minute


@numba.njit
def accident_ahead(last, before, key, minute):
    """The nearest segment downstream with an accident in `minute`, or -1."""
    seg, base = key % SEGMENTS, key - key % SEGMENTS
    step = 1 if (key // SEGMENTS) % 2 == 0 else -1
    for ahead in range(REACH):
        there = seg + step * ahead
        if there < 0 or there >= SEGMENTS:
            break
        if last[base + there] == minute or before[base + there] == minute:
            return there
    return -1


@numba.njit
def look_ahead(lavs, counts, last, before, minute, alerts, above):
    """Update the alert of every segment, and the number of cars that its toll is computed from."""
    for key in range(len(lavs)):
        alerts[key] = accident_ahead(last, before, key, minute - 1)
        tolled = alerts[key] < 0 and lavs[key] < FREE_SPEED and counts[key] > FREE_CARS
        above[key] = counts[key] - FREE_CARS if tolled else 0


class Known(NamedTuple):
    """Tables by segment: statistics, alert, the number of cars that the toll is computed from, and
    the latest two minutes with an accident."""

    lav: Any
    cars: Any
    alert: Any
    above: Any
    last: Any
    before: Any


@numba.njit
def with_segments(known, needed, no_lav):
    """Tables with room for `needed` segments, in whole directions; and whether they have grown."""
    size = len(known.lav)
    needed = (needed + SEGMENTS - 1) // SEGMENTS * SEGMENTS
    if needed <= size:
        return known, False
    new = max(needed, size + size // 4 // SEGMENTS * SEGMENTS)
    known = Known(
        xs.grow(known.lav, new), xs.grow(known.cars, new), xs.grow(known.alert, new),
        xs.grow(known.above, new), xs.grow(known.last, new), xs.grow(known.before, new),
    )  # fmt: skip
    known.lav[size:], known.cars[size:] = no_lav, 0
    known.last[size:], known.before[size:] = NO_MINUTE, NO_MINUTE
    return known, True


@numba.njit
def updated(known, minutes, time, segment, mark, no_lav, is_new):
    """Apply the statistics and accidents of a second."""
    minute, n = time // 60, len(segment)
    for k in range(n):
        known.lav[k], known.cars[k] = segment[k].lav, segment[k].cars
    if n > 0:
        known.lav[n:], known.cars[n:] = no_lav, 0
    news = minute != minutes[0] or is_new or n > 0
    for i in range(len(mark)):
        remember(known.last, known.before, mark[i].key, mark[i].minute)
        news = news or mark[i].minute < minute
    if news:
        look_ahead(
            known.lav, known.cars, known.last, known.before, minute, known.alert, known.above
        )  # fmt: skip
        minutes[0] = minute


@numba.njit
def most_segments(key, mark, least):
    """The number of segments that reports and marks refer to, at least `least`."""
    needed = np.int64(least)
    for i in range(len(key)):
        needed = max(needed, np.int64(key[i]) + 1)
    for i in range(len(mark)):
        needed = max(needed, mark[i].key + 1)
    return needed


@xs.kernel(
    state={
        "minute": np.array([NO_MINUTE], np.int64),
        "lav": np.zeros(200, np.int32),
        "cars": np.zeros(200, np.int32),
        "alert": np.full(200, -1, np.int32),
        "above": np.zeros(200, np.int32),
        "last": np.full(200, NO_MINUTE, np.int64),
        "before": np.full(200, NO_MINUTE, np.int64),
        "quoted": np.zeros(1024, np.int32),
    },
    out=ANSWERS | {"charge_vid": column("int32"), "charge": column("int64")},
)
def tolls(time, last, vid, key, link, actions, kept, segment, mark, no_lav, state, out):
    """One notification per trigger, alerts near accidents, and charges for segments that were left.

    `quoted` holds the toll that every trip was quoted for its segment, as the number of cars that
    it is computed from, at the index of its last report or (if `kept` is BY_TRIP) at the number of
    the trip.
    """
    n, kept_at = len(vid), kept[0]
    known = Known(state.lav, state.cars, state.alert, state.above, state.last, state.before)
    known, is_new = with_segments(known, most_segments(key, mark, len(segment)), no_lav)
    updated(known, state.minute, time, segment, mark, no_lav, is_new)
    quoted = xs.grow(state.quoted, kept[1])
    lavs, alerts, above = known.lav, known.alert, known.above
    told, charged = 0, 0
    kind, who = np.empty(2 * n, np.int8), np.empty(2 * n, np.int32)
    value, amount = np.empty(2 * n, np.int32), np.empty(2 * n, np.int64)
    charge_vid, charge = np.empty(n, np.int32), np.empty(n, np.int64)
    for i in range(n):
        k, at, flag = key[i], link[i], actions[i]
        quote = quoted[at] if at >= 0 else np.int32(0)
        if flag & CROSSED and quote > 0:
            charge_vid[charged], charge[charged] = vid[i], toll_for(quote)
            charged += 1
        if flag & (CROSSED | FIRST):
            quote = np.int32(0)
        if flag & TRIGGER:
            if alerts[k] >= 0:
                kind[told], who[told], value[told], amount[told] = ALERT, vid[i], alerts[k], 0
                told += 1
            kind[told], who[told], value[told] = TOLL, vid[i], lavs[k]
            amount[told] = toll_for(above[k])
            told += 1
            if flag & (CROSSED | FIRST):
                quote = above[k]
        quoted[at if kept_at == BY_TRIP else kept_at + i] = quote
    out.emit_at(
        0, time, last, kind[:told], who[:told], value[:told], amount[:told], charge_vid[:charged],
        charge[:charged],
    )  # fmt: skip
