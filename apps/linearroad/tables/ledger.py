"""The ledger: a balance for every vehicle, in pages of neighbours.

A page holds the balances of 32 vehicles with consecutive numbers; a hash table maps the number of a
page to its place. Where numbers are dense, as generated ones are, a vehicle takes the 4 bytes of
its balance and a fraction of an entry. Otherwise every vehicle that was charged takes a page.
Balances that need more than 4 bytes are in a table of their own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from linearroad.tables.overflow import NO_OVERFLOW, keep_wide, wide_number
from xstream.kernels.hashtable import EMPTY, entry_of, home, with_room

__all__ = ["ENTRY", "LEDGER", "PAGE", "Ledger", "balance_of", "charge_all", "ledger_of"]

PAGE = 32  # vehicles
PAGE_BITS = 5
TOGETHER = 64  # charges whose balances are fetched from memory at the same time
#: A balance that is in the table of wide ones; it and those beyond ±MOST do not fit.
ELSEWHERE = -(2**31)
MOST = 2**31 - 1

#: The number of a page of vehicles, and where its balances are.
ENTRY = np.dtype([("key", "i4"), ("page", "i4")], align=True)

#: State of a kernel that keeps a ledger; `used` counts the pages and the wide balances in use.
LEDGER = {
    "used": np.zeros(2, np.int64),
    "entry": np.full(64, np.array((EMPTY, 0), ENTRY)),
    "balance": np.zeros(64 * PAGE, np.int32),
    "wide": NO_OVERFLOW,
}
PAGES, WIDES = range(2)


class Ledger(NamedTuple):
    """The arrays of a ledger."""

    used: Any
    entry: Any
    balance: Any
    wide: Any


@numba.njit
def ledger_of(state):
    """The ledger in the state of a kernel."""
    return Ledger(state.used, state.entry, state.balance, state.wide)


@numba.njit(inline="always")
def place_in(entry, vid):
    """The index of a vehicle's balance, by the entry of its page."""
    return entry.page * PAGE + (vid & (PAGE - 1))


@numba.njit
def with_page(ledger, number):
    """The ledger with one more page of vehicles, number `number`."""
    used = ledger.used
    entries = with_room(ledger.entry, used[PAGES] + 1)
    entry = entries[entry_of(entries, number)]
    entry.key, entry.page = number, used[PAGES]
    used[PAGES] += 1
    return Ledger(used, entries, xs.grow(ledger.balance, used[PAGES] * PAGE), ledger.wide)


@numba.njit
def balance_of(ledger, vid):
    """The total of a vehicle's charges; 0 without an account."""
    entry = ledger.entry[entry_of(ledger.entry, vid >> PAGE_BITS)]
    if entry.key == EMPTY:
        return np.int64(0)
    balance = np.int64(ledger.balance[place_in(entry, vid)])
    return balance if balance != ELSEWHERE else wide_number(ledger.wide, vid)


@numba.njit
def charge_wide(ledger, place, vid, amount):
    """Charge a vehicle whose balance does not fit any longer; returns the ledger."""
    balance = np.int64(ledger.balance[place])
    if balance == ELSEWHERE:
        balance = wide_number(ledger.wide, vid)
    wide = with_room(ledger.wide, ledger.used[WIDES] + 1)
    ledger.used[WIDES] += keep_wide(wide, vid, balance + amount)
    ledger.balance[place] = ELSEWHERE
    return Ledger(ledger.used, ledger.entry, ledger.balance, wide)


@numba.njit
def charge_all(ledger, vids, amounts):
    """Charge many vehicles; returns the ledger, which may have moved."""
    places = np.empty(min(TOGETHER, len(vids)), np.int64)
    for begin in range(0, len(vids), TOGETHER):
        some = min(TOGETHER, len(vids) - begin)
        for i in range(some):
            xs.prefetch(ledger.entry, home(vids[begin + i] >> PAGE_BITS, len(ledger.entry)))
        for i in range(some):
            vid = np.int64(vids[begin + i])
            at = entry_of(ledger.entry, vid >> PAGE_BITS)
            if ledger.entry[at].key == EMPTY:
                ledger = with_page(ledger, vid >> PAGE_BITS)
                at = entry_of(ledger.entry, vid >> PAGE_BITS)
            places[i] = place_in(ledger.entry[at], vid)
            xs.prefetch(ledger.balance, places[i])
        for i in range(some):
            balance, amount = np.int64(ledger.balance[places[i]]), amounts[begin + i]
            total = balance + amount
            if balance == ELSEWHERE or abs(total) > MOST:
                ledger = charge_wide(ledger, places[i], np.int64(vids[begin + i]), amount)
            else:
                ledger.balance[places[i]] = total
    return ledger
