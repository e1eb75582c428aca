"""Lookups in the compact history store."""

from __future__ import annotations

import numpy as np

import xstream as xs

MINUTES = 1440
SEGMENTS = 100
# A mean of exactly 40 must be 40, regardless of the order of summation.
EXACT = 1e-9


@xs.compiled
def find_vid(vids, vid):
    """The index of a VID in an ascending array, or -1; without a search if VIDs are consecutive."""
    n = vids.shape[0]
    if n == 0:
        return -1
    guess = vid - vids[0]
    if 0 <= guess < n and vids[guess] == vid:
        return guess
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if vids[middle] < vid:
            low = middle + 1
        else:
            high = middle
    return low if low < n and vids[low] == vid else -1


@xs.compiled
def first_minute(dow, d):
    """The index of the first minute of a day of the week in one direction."""
    return ((dow - 1) * 2 + d) * MINUTES


@xs.compiled
def one_segment(sums, begin, segment, clock, free_cars=50, base_toll=2):
    """Minutes to cross a segment that is reached at minute `clock` of the day, and its toll.

    The toll is `base_toll` times the square of the vehicles above `free_cars`.

    `sums` is flat, and `begin` is the result of `first_minute`. Means are compared as quotients of
    integers, so that rounding has no effect.
    """
    minute = np.int64(clock + EXACT) - 1
    while minute >= MINUTES:
        minute -= MINUTES
    at = ((begin + minute) * SEGMENTS + segment) * 3
    speeds, vehicles, days = np.int64(sums[at]), np.int64(sums[at + 1]), np.int64(sums[at + 2])
    toll = np.int64(0)
    if speeds < 40 * days and vehicles // days > free_cars:
        over = vehicles // days - free_cars
        toll = base_toll * over * over
    if speeds <= days:  # 1 mph or less, or nothing is known
        return 60.0, toll
    return 60.0 * days / speeds, toll


@xs.compiled
def in_seconds(minutes):
    """Minutes as whole seconds; half a second is rounded up, even if the sum is slightly below."""
    return np.int64(np.floor(60.0 * minutes + 0.5 + EXACT))


@xs.compiled
def travel(sums, sinit, send, dow, tod):
    """Travel time in seconds and tolls, segment by segment at the minute each is reached."""
    d = 0 if sinit <= send else 1
    step = 1 if d == 0 else -1
    flat = sums.reshape(-1)
    begin = first_minute(dow, d)
    taken, tolls = 0.0, 0
    segment = sinit
    while segment != send:
        minutes, toll = one_segment(flat, begin, segment, tod + taken)
        taken += minutes
        tolls += toll
        segment += step
    return in_seconds(taken), tolls
