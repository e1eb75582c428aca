"""Digests, counts and times of answers: compiled code."""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.operators.digests import add
from linearroad.schema import ALERT, BALANCE, TOLL
from xstream.kernels.hashtable import EMPTY, entry_of

__all__ = ["add_digests", "count_seconds", "enter_times", "find_times", "moved_times"]


@xs.compiled
def count_seconds(kind, time, first, counts):
    """Count answers by kind and second from `first` on; returns how many are of other seconds."""
    others = 0
    for i in range(len(kind)):
        place = np.int64(time[i]) - first
        if 0 <= place < counts.shape[1]:
            counts[kind[i], place] += 1
        else:
            others += 1
    return others


@xs.compiled
def add_digests(kind, time, who, value, amount, vids, qids, digests):
    """Add answers to the digests of their copies, minutes and kinds, as their original's.

    Copy c has the vehicles from c * vids on and the requests from c * qids on. Returns the number
    of answers that belong to no copy and minute.
    """
    others = 0
    copies, minutes = digests.shape[0], digests.shape[1]
    for i in range(len(kind)):
        by = vids if kind[i] == TOLL or kind[i] == ALERT else qids
        copy, minute = np.int64(who[i]) // by, np.int64(time[i]) // 60
        if not (0 <= copy < copies and 0 <= minute < minutes):
            others += 1
            continue
        # The digests of a run have the value 0 for a balance at the time of its request.
        content = value[i] - time[i] if kind[i] == BALANCE else value[i]
        sums = digests[copy, minute, kind[i]]
        add(sums, 0, kind[i], time[i], np.int64(who[i]) - copy * by, content, amount[i])
    return others


@xs.compiled
def enter_times(table, keys, times):
    """Enter times by key into a hash table with room; returns the number of new keys."""
    new = 0
    for i in range(len(keys)):
        if keys[i] < 0:
            continue
        entry = table[entry_of(table, np.int64(keys[i]))]
        if entry.key == EMPTY:
            entry.key = keys[i]
            new += 1
        entry.time = times[i]
    return new


@xs.compiled
def find_times(table, keys):
    """The time of each key, or -1."""
    found = np.empty(len(keys), np.int32)
    for i in range(len(keys)):
        found[i] = table[entry_of(table, np.int64(keys[i]))].time if keys[i] >= 0 else -1
    return found


@xs.compiled
def moved_times(old, new):
    """Enter all of a table into an empty, larger one."""
    for i in range(len(old)):
        if old[i].key != EMPTY:
            new[entry_of(new, old[i].key)] = old[i]
