"""Rows of several files merged by Time, a second's rows of a file at once."""

from __future__ import annotations

import numpy as np
from numba import njit

import xstream as xs

FIELDS = 15


@njit(cache=True, nogil=True)
def merge_rows(addresses, times_at, lengths, positions, ended, origins_at, out, origins):
    """Copy rows in the order of Time until a file has no more rows here, or there is no room.

    `addresses` are those of each file's columns, one after another in an array of (15, length)
    int32; `times_at` of the seconds that its rows come in (int64: a bad row comes when the one
    before it does, whatever it says); `origins_at` of where its rows come from. Moves `positions`
    on and returns how many rows were copied. Runs of one Time are copied whole.
    """
    files, copied = len(addresses), 0
    while True:
        now = np.int64(1) << 40
        for f in range(files):
            if positions[f] == lengths[f]:
                if not ended[f]:
                    return copied
                continue
            times = xs.array_at(times_at[f], lengths[f], np.int64)
            now = min(now, times[positions[f]])
        if now == np.int64(1) << 40:
            return copied
        for f in range(files):
            begin, length = positions[f], lengths[f]
            if begin == length:
                continue
            columns = xs.array_at(addresses[f], FIELDS * length, np.int32)
            times = xs.array_at(times_at[f], length, np.int64)
            end = begin
            while end < length and times[end] == now:
                end += 1
            run = end - begin
            if run == 0:
                continue
            if copied + run > out.shape[1]:
                if copied > 0:
                    return copied
                run = out.shape[1]  # a second that does not fit whole comes in parts
                end = begin + run
            for c in range(FIELDS):
                for k in range(run):
                    out[c, copied + k] = columns[c * length + begin + k]
            where = xs.array_at(origins_at[f], length, np.int64)
            for k in range(run):
                origins[copied + k] = where[begin + k]
            copied += run
            positions[f] = end
