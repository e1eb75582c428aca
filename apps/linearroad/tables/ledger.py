"""The ledger: a balance for every vehicle, in pages of neighbours.

A page holds the balances of 32 vehicles with consecutive numbers and is found by hashing the number
of the page. Where numbers are dense, as generated ones are, a vehicle costs its 8 bytes and a
fraction of one for the directory; where they are not, a page for each that was ever charged.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs

__all__ = ["LEDGER", "PAGE", "balance_of", "charge_all", "more_pages", "room_in_ledger"]

PAGE = 32  # vehicles
PAGE_BITS = 5
TOGETHER = 64  # charges whose places in memory are looked for at once

#: The number of a page of vehicles (-1: free), and which page of balances that is.
ENTRY = np.dtype([("number", "i4"), ("page", "i4")], align=True)

#: State of a kernel that keeps a ledger; `pages` counts those in use.
LEDGER = {
    "pages": np.zeros(1, np.int64),
    "entry": np.full(64, np.array((-1, 0), ENTRY)),
    "balance": np.zeros(64 * PAGE, np.int64),
}


@numba.njit(inline="always")
def home(number, size):
    """Where the entry of a page is looked for first."""
    return ((np.int64(number) * -7046029254386353131) >> 32) & (size - 1)


@numba.njit(inline="always")
def entry_at(entries, number):
    """Where the entry of a page is, or would be."""
    mask = len(entries) - 1
    at = home(number, len(entries))
    while entries[at].number != -1 and entries[at].number != number:
        at = (at + 1) & mask
    return at


@numba.njit(inline="always")
def place_in(entry, vid):
    """Where a vehicle's balance is, by the entry of its page."""
    return entry.page * PAGE + (vid & (PAGE - 1))


@numba.njit
def more_pages(entries):
    """A directory with twice the room."""
    old = entries.copy()
    entries = xs.grow(entries, 2 * len(entries))
    for i in range(len(entries)):
        entries[i].number = -1
    for i in range(len(old)):
        if old[i].number != -1:
            entries[entry_at(entries, old[i].number)] = old[i]
    return entries


@numba.njit
def room_in_ledger(pages, entries, balances, vid):
    """The ledger with an account for a vehicle, whose page may have been missing."""
    number = vid >> PAGE_BITS
    at = entry_at(entries, number)
    if entries[at].number == -1:
        if 3 * (pages[0] + 1) > 2 * len(entries):
            entries = more_pages(entries)
            at = entry_at(entries, number)
        entries[at].number, entries[at].page = number, pages[0]
        pages[0] += 1
        balances = xs.grow(balances, pages[0] * PAGE)
    return entries, balances


@numba.njit
def balance_of(entries, balances, vid):
    """What a vehicle was charged in all; 0 for one without an account."""
    entry = entries[entry_at(entries, vid >> PAGE_BITS)]
    return balances[place_in(entry, vid)] if entry.number != -1 else np.int64(0)


@numba.njit
def charge_all(pages, entries, balances, vids, amounts):
    """Charge many; the ledger as it is now."""
    places = np.empty(min(TOGETHER, len(vids)), np.int64)
    for begin in range(0, len(vids), TOGETHER):
        some = min(TOGETHER, len(vids) - begin)
        for i in range(some):
            xs.prefetch(entries, home(vids[begin + i] >> PAGE_BITS, len(entries)))
        for i in range(some):
            vid = np.int64(vids[begin + i])
            at = entry_at(entries, vid >> PAGE_BITS)
            if entries[at].number == -1:
                entries, balances = room_in_ledger(pages, entries, balances, vid)
                at = entry_at(entries, vid >> PAGE_BITS)
            places[i] = place_in(entries[at], vid)
            xs.prefetch(balances, places[i])
        for i in range(some):
            balances[places[i]] += amounts[begin + i]
    return entries, balances
