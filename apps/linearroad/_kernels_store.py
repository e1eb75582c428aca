"""Lookups in the compact history store."""

from __future__ import annotations

import numpy as np
from numba import njit

MINUTES = 1440
# A mean of exactly 40 must be 40, however it was summed.
EXACT = 1e-9


@njit(cache=True)
def find_vid(vids, vid):
    """The place of a VID in an ascending array, or -1; at once where VIDs are consecutive."""
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


@njit(cache=True, error_model="numpy")
def one_segment(sums, dow, d, segment, clock):
    """Minutes to cross a segment that is reached at minute `clock` of the day, and its toll."""
    minute = (np.int64(clock + EXACT) - 1) % MINUTES
    days = sums[dow - 1, d, minute, segment, 2]
    lav, cnt = 0.0, 0.0
    if days > 0:
        lav = sums[dow - 1, d, minute, segment, 0] / days
        cnt = sums[dow - 1, d, minute, segment, 1] / days
    toll = 0
    vehicles = np.int64(np.floor(cnt + EXACT))
    if np.floor(lav + EXACT) < 40 and vehicles > 50:
        toll = 2 * (vehicles - 50) * (vehicles - 50)
    return 60.0 / max(lav, 1.0), toll


@njit(cache=True)
def in_seconds(minutes):
    """Minutes as whole seconds."""
    return np.int64(np.floor(60.0 * minutes + 0.5))


@njit(cache=True)
def travel(sums, sinit, send, dow, tod):
    """Travel time in seconds and tolls, segment by segment at the minute each is reached."""
    d = 0 if sinit <= send else 1
    step = 1 if d == 0 else -1
    clock = np.float64(tod)
    tolls = 0
    segment = sinit
    while segment != send:
        minutes, toll = one_segment(sums, dow, d, segment, clock)
        clock += minutes
        tolls += toll
        segment += step
    return in_seconds(clock - tod), tolls
