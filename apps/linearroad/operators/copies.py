"""Copies of expressways: the same traffic with an XWay, VIDs and QIDs of its own."""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.operators.vehicles import MINUTE, NEVER, SUMS
from linearroad.operators.vehicles import STATE as VEHICLES
from linearroad.schema import ASKS_BALANCE, REQUEST, column
from linearroad.tables.expressways import XWAYS
from linearroad.tables.ledger import LEDGER, PAGE
from linearroad.tables.road import PHASES, place_of
from xstream.kernels.hashtable import EMPTY, entry_of

__all__ = ["shift", "shifted_accidents", "shifted_accounts", "shifted_vehicles"]


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
def renumbered_road(old, vid_by, road):
    """Enter vehicles under other numbers into an empty table of the same size."""
    for i in range(len(old)):
        if old[i] != EMPTY:
            road[place_of(road, old[i] // PHASES + vid_by)] = old[i] + vid_by * PHASES


@xs.compiled
def renumbered_xways(old, xway_by, xways):
    """Enter expressways under other numbers into an empty table of the same size."""
    for i in range(len(old)):
        if old[i].key != EMPTY:
            entry = xways[entry_of(xways, old[i].key + xway_by)]
            entry.key, entry.slot = old[i].key + xway_by, old[i].slot


def shifted_vehicles(state, vid_by, xway_by):
    """The vehicles on the road at the end of a minute, whose sums are no longer needed."""
    report = state["report"].copy()
    report["vid"] += np.int32(vid_by)
    road = np.full_like(state["road"], EMPTY)
    renumbered_road(state["road"], np.int64(vid_by), road)
    xway = np.full(len(state["xway"]), XWAYS[0])
    renumbered_xways(state["xway"], np.int64(xway_by), xway)
    number = state["number"].copy()
    number[SUMS], number[MINUTE] = 0, NEVER
    return {
        **state, "number": number, "report": report, "road": road, "xway": xway,
        "built": np.zeros_like(state["built"]), "table": VEHICLES["table"], "sum": VEHICLES["sum"],
    }  # fmt: skip


def shifted_accidents(state, vid_by, xway_by):
    """Only VIDs are shifted: places are relative to the slots of expressways."""
    standing = state["standing"].copy()
    standing["vid"] += np.int32(vid_by)
    return {**state, "standing": standing}


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


def shifted_accounts(state, vid_by, xway_by):
    """The ledger of vehicles with other numbers, whose pages begin elsewhere."""
    most = 2 * int(state["pages"][0]) + 1  # a page of the original may overlap two
    entry = np.full(3 * most // 2 + 1, LEDGER["entry"][0])
    balance = np.zeros(most * PAGE, np.int64)
    pages = move_accounts(state["entry"], state["balance"], vid_by, entry, balance)
    return {
        **state, "pages": np.array([pages], np.int64), "entry": entry,
        "balance": balance[: max(pages, 1) * PAGE],
    }  # fmt: skip
