"""The ledger: a balance for every vehicle, in pages of neighbours.

A page holds the balances of 32 vehicles with consecutive numbers; a hash table maps the number of a
page to its place. Where numbers are dense, as generated ones are, a vehicle takes the 8 bytes of
its balance and a fraction of an entry. Otherwise every vehicle that was charged takes a page.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from xstream.kernels.hashtable import EMPTY, entry_of, home, with_room

__all__ = ["ENTRY", "LEDGER", "PAGE", "balance_of", "charge_all"]

PAGE = 32  # vehicles
PAGE_BITS = 5
TOGETHER = 64  # charges whose balances are fetched from memory at the same time

#: The number of a page of vehicles, and where its balances are.
ENTRY = np.dtype([("key", "i4"), ("page", "i4")], align=True)

#: State of a kernel that keeps a ledger; `pages` counts the pages in use.
LEDGER = {
    "pages": np.zeros(1, np.int64),
    "entry": np.full(64, np.array((EMPTY, 0), ENTRY)),
    "balance": np.zeros(64 * PAGE, np.int64),
}


@numba.njit(inline="always")
def place_in(entry, vid):
    """The index of a vehicle's balance, by the entry of its page."""
    return entry.page * PAGE + (vid & (PAGE - 1))


@numba.njit
def with_page(pages, entries, balances, number):
    """The ledger with one more page of vehicles, number `number`."""
    entries = with_room(entries, pages[0] + 1)
    entry = entries[entry_of(entries, number)]
    entry.key, entry.page = number, pages[0]
    pages[0] += 1
    return entries, xs.grow(balances, pages[0] * PAGE)


@numba.njit
def balance_of(entries, balances, vid):
    """The total of a vehicle's charges; 0 without an account."""
    entry = entries[entry_of(entries, vid >> PAGE_BITS)]
    return balances[place_in(entry, vid)] if entry.key != EMPTY else np.int64(0)


@numba.njit
def charge_all(pages, entries, balances, vids, amounts):
    """Charge many vehicles; returns the entries and balances, which may have moved."""
    places = np.empty(min(TOGETHER, len(vids)), np.int64)
    for begin in range(0, len(vids), TOGETHER):
        some = min(TOGETHER, len(vids) - begin)
        for i in range(some):
            xs.prefetch(entries, home(vids[begin + i] >> PAGE_BITS, len(entries)))
        for i in range(some):
            vid = np.int64(vids[begin + i])
            at = entry_of(entries, vid >> PAGE_BITS)
            if entries[at].key == EMPTY:
                entries, balances = with_page(pages, entries, balances, vid >> PAGE_BITS)
                at = entry_of(entries, vid >> PAGE_BITS)
            places[i] = place_in(entries[at], vid)
            xs.prefetch(balances, places[i])
        for i in range(some):
            balances[places[i]] += amounts[begin + i]
    return entries, balances
