"""Copies of expressways: the same traffic with an XWay, VIDs and QIDs of its own."""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.operators.trips import HIGHEST, MINUTE, NEVER, SUMS
from linearroad.operators.vehicles import STATE as VEHICLES
from linearroad.schema import ASKS_BALANCE, REQUEST, column
from linearroad.tables.expressways import XWAYS
from linearroad.tables.ledger import LEDGER, PAGE, WIDES
from linearroad.tables.overflow import NO_OVERFLOW, keep_wide
from xstream.kernels.hashtable import EMPTY, entry_of

__all__ = ["shift", "shifted_accounts", "shifted_vehicles"]


@xs.kernel(out={"vid": column("int32"), "xway": column("int32"), "request": column(REQUEST)})
def shift(vid, xway, request, vid_by, xway_by, qid_by, out):
    """A second's vehicles, expressways and requests of one copy; all other columns are shared."""
    vids, xways = np.empty(len(vid), np.int32), np.empty(len(xway), np.int32)
    for i in range(len(vid)):
        vids[i] = vid[i] + vid_by
        xways[i] = xway[i] + xway_by
    requests = request.copy()
    for i in range(len(requests)):
        requests[i].vid += vid_by
        requests[i].qid += qid_by
        if requests[i].type != ASKS_BALANCE:  # a balance covers all expressways
            requests[i].xway += xway_by
    out.emit_at(0, vids, xways, requests)


# -- the state of a copy, made from that of its original --------------------------------------


@xs.compiled
def renumbered_xways(old, xway_by, xways):
    """Enter expressways under other numbers into an empty table of the same size."""
    for i in range(len(old)):
        if old[i].key != EMPTY:
            entry = xways[entry_of(xways, old[i].key + xway_by)]
            entry.key, entry.slot = old[i].key + xway_by, old[i].slot


def shifted_vehicles(state, vid_by, xway_by):
    """The vehicles on the road at the end of a minute, whose sums are no longer needed."""
    xway = np.full(len(state["xway"]), XWAYS[0])
    renumbered_xways(state["xway"], np.int64(xway_by), xway)
    number = state["number"].copy()
    number[SUMS], number[MINUTE] = 0, NEVER
    number[HIGHEST] += vid_by
    return {
        **state, "number": number, "vid": state["vid"] + np.int32(vid_by), "xway": xway,
        "built": np.zeros_like(state["built"]), "table": VEHICLES["table"], "sum": VEHICLES["sum"],
    }  # fmt: skip


@xs.compiled
def move_accounts(old_entries, old_balances, vid_by, entries, balances):
    """Enter balances under other numbers into an empty ledger with room; returns its pages."""
    pages = 0
    for i in range(len(old_entries)):
        if old_entries[i].key == EMPTY:
            continue
        for k in range(PAGE):
            amount = old_balances[old_entries[i].page * PAGE + k]
            if amount == 0:
                continue
            vid = np.int64(old_entries[i].key) * PAGE + k + vid_by
            entry = entries[entry_of(entries, vid // PAGE)]
            if entry.key == EMPTY:
                entry.key, entry.page = vid // PAGE, pages
                pages += 1
            balances[entry.page * PAGE + vid % PAGE] = amount
    return pages


@xs.compiled
def move_wide(old, vid_by, wide):
    """Enter wide balances under other numbers into an empty table of the same size."""
    for i in range(len(old)):
        if old[i].key != EMPTY:
            keep_wide(wide, old[i].key + vid_by, old[i].value)


def shifted_accounts(state, vid_by, xway_by):
    """The ledger of vehicles with other numbers, whose pages begin elsewhere."""
    begins = state["entry"]["key"][state["entry"]["key"] != EMPTY].astype(np.int64) * PAGE + vid_by
    most = len(np.unique([begins // PAGE, (begins + PAGE - 1) // PAGE]))  # may overlap two
    entry = np.full(max(3 * most // 2 + 1, len(LEDGER["entry"])), LEDGER["entry"][0])
    balance, wide = (
        np.zeros(max(most, 1) * PAGE, np.int32),
        np.full(len(state["wide"]), NO_OVERFLOW[0]),
    )
    pages = move_accounts(state["entry"], state["balance"], vid_by, entry, balance)
    move_wide(state["wide"], np.int64(vid_by), wide)
    return {
        **state, "used": np.array([pages, state["used"][WIDES]], np.int64), "entry": entry,
        "balance": balance[: max(pages, 1) * PAGE], "wide": wide,
    }  # fmt: skip
