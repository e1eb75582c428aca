"""Toll and accident notifications, and the charges that follow from them."""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.queries.layout import (
    BY_TRIP,
    CROSSED,
    FIRST,
    NO_MINUTE,
    SEGMENTS,
    TRIGGER,
    column,
)

__all__ = ["tolls"]

REACH = 5  # segments, the vehicle's own included, in which an accident matters
FREE_SPEED, FREE_CARS = 40, 50


@numba.njit(inline="always")
def toll_for(above):
    """The toll where so many more cars were than drive for free."""
    return 2 * np.int64(above) * np.int64(above)


@numba.njit
def remember(last, before, key, minute):
    """Note an accident minute; only the latest two can still matter."""
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
    """What holds in every segment: the accident to be told of, and how many cars tolls are for."""
    for key in range(len(lavs)):
        alerts[key] = accident_ahead(last, before, key, minute - 1)
        tolled = alerts[key] < 0 and lavs[key] < FREE_SPEED and counts[key] > FREE_CARS
        above[key] = counts[key] - FREE_CARS if tolled else 0


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
    out={
        "time": int,
        "toll_vid": column("int32"),
        "toll_lav": column("int32"),
        "toll": column("int64"),
        "alert_vid": column("int32"),
        "alert_seg": column("int32"),
        "charge_vid": column("int32"),
        "charge": column("int64"),
    },
)
def tolls(
    time, vid, key, link, flags, fresh, gain, event, reject, kept_at, linked, implausible, lav,
    cars, marks, no_lav, state, out,
):  # fmt: skip
    """At every trigger one notification; alerts near accidents; charges for segments left behind.

    `quoted` holds, for every trip, the toll of the segment that it is in (as the cars that it is
    for), at the place of its last report, or (`kept_at` is BY_TRIP) at its number.
    """
    n = len(vid)
    lavs, counts, last, before = state.lav, state.cars, state.last, state.before
    alerts, above, quoted, needed = state.alert, state.above, state.quoted, len(lav)
    for i in range(n):
        needed = max(needed, key[i] + 1)
    for i in range(len(marks) // 2):
        needed = max(needed, marks[2 * i] + 1)
    needed = (needed + SEGMENTS - 1) // SEGMENTS * SEGMENTS
    size = len(lavs)
    if needed > size:
        new = max(needed, 2 * size)
        lavs, counts = xs.grow(lavs, new), xs.grow(counts, new)
        last, before = xs.grow(last, new), xs.grow(before, new)
        alerts, above = xs.grow(alerts, new), xs.grow(above, new)
        lavs[size:], counts[size:] = no_lav, 0
        last[size:], before[size:] = NO_MINUTE, NO_MINUTE
    if linked > len(quoted):
        quoted = xs.grow(quoted, linked)
    if len(lav) > 0:
        lavs[: len(lav)], counts[: len(lav)] = lav, cars
        lavs[len(lav) :], counts[len(lav) :] = no_lav, 0
    minute = time // 60
    news = minute != state.minute[0] or needed > size or len(lav) > 0
    for i in range(len(marks) // 2):
        remember(last, before, marks[2 * i], marks[2 * i + 1])
        news = news or marks[2 * i + 1] < minute
    if news:
        look_ahead(lavs, counts, last, before, minute, alerts, above)
        state.minute[0] = minute
    told, alerted, charged = 0, 0, 0
    toll_vid, toll_lav = np.empty(n, np.int32), np.empty(n, np.int32)
    toll, charge = np.empty(n, np.int64), np.empty(n, np.int64)
    alert_vid, alert_seg = np.empty(n, np.int32), np.empty(n, np.int32)
    charge_vid = np.empty(n, np.int32)
    for i in range(n):
        flag, quote = flags[i], np.int32(0)
        if link[i] >= 0:
            quote = quoted[link[i]]
        if flag & CROSSED and quote > 0:
            charge_vid[charged], charge[charged] = vid[i], toll_for(quote)
            charged += 1
        if flag & (CROSSED | FIRST):
            quote = np.int32(0)
        if flag & TRIGGER:
            k = key[i]
            if alerts[k] >= 0:
                alert_vid[alerted], alert_seg[alerted] = vid[i], alerts[k]
                alerted += 1
            toll_vid[told], toll_lav[told], toll[told] = vid[i], lavs[k], toll_for(above[k])
            told += 1
            if flag & (CROSSED | FIRST):
                quote = above[k]
        quoted[link[i] if kept_at == BY_TRIP else kept_at + i] = quote
    out.emit_at(
        0, time, toll_vid[:told], toll_lav[:told], toll[:told], alert_vid[:alerted],
        alert_seg[:alerted], charge_vid[:charged], charge[:charged],
    )  # fmt: skip
