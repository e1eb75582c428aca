"""Copies of expressways: the same traffic with an XWay, VIDs and QIDs of its own."""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.operators.vehicles import MINUTE, NEVER, SUMS
from linearroad.operators.vehicles import STATE as VEHICLES
from linearroad.schema import ASKS_BALANCE, REQUEST, column
from linearroad.tables.expressways import put_slot
from linearroad.tables.ledger import LEDGER, PAGE, entry_at
from linearroad.tables.road import PHASES, entry_of

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
        if requests[i].type != ASKS_BALANCE:  # a balance is of all expressways
            requests[i].xway += xway_by
    out.emit_at(0, vids, xways, requests)


# -- the state of an original, as a copy's would be --------------------------------------------


@xs.compiled
def put_on_the_road(old_vids, old_phases, vid_by, vids, phases):
    """Enter vehicles under other numbers into a table of the same size."""
    for i in range(len(old_vids)):
        if old_vids[i] != -1:
            vid = old_vids[i] + vid_by
            at = entry_of(vids, phases, vid, old_phases[i] // PHASES)
            vids[at], phases[at] = vid, old_phases[i]


def shifted_vehicles(state, vid_by, xway_by):
    """The vehicles on the road at the end of a minute, when nothing of it matters any more."""
    report = state["report"].copy()
    report["vid"] += np.int32(vid_by)
    road_vid, road_phase = np.full_like(state["road_vid"], -1), np.zeros_like(state["road_phase"])
    put_on_the_road(
        state["road_vid"], state["road_phase"], np.int32(vid_by), road_vid, road_phase
    )  # fmt: skip
    number = state["number"].copy()
    number[SUMS], number[MINUTE] = 0, NEVER
    xway_key, xway_slot = np.full_like(state["xway_key"], -1), np.zeros_like(state["xway_slot"])
    for xway, slot in zip(state["xway_key"], state["xway_slot"], strict=True):
        if xway != -1:
            put_slot(xway_key, xway_slot, xway + xway_by, slot)
    return {
        **state, "number": number, "report": report, "road_vid": road_vid,
        "road_phase": road_phase, "xway_key": xway_key, "xway_slot": xway_slot,
        "built": np.zeros_like(state["built"]), "table": VEHICLES["table"], "sum": VEHICLES["sum"],
    }  # fmt: skip


def shifted_accidents(state, vid_by, xway_by):
    """Places are counted from an expressway's first, so only vehicles have other numbers."""
    standing = state["standing"].copy()
    standing["vid"] += np.int32(vid_by)
    return {**state, "standing": standing}


@xs.compiled
def move_accounts(old_entries, old_balances, vid_by, entries, balances):
    """Enter balances under other numbers into an empty ledger with room; how many pages it has."""
    pages = 0
    for i in range(len(old_entries)):
        if old_entries[i].number == -1:
            continue
        for k in range(PAGE):
            amount = old_balances[old_entries[i].page * PAGE + k]
            if amount == 0:
                continue
            vid = np.int64(old_entries[i].number) * PAGE + k + vid_by
            at = entry_at(entries, vid // PAGE)
            if entries[at].number == -1:
                entries[at].number, entries[at].page = vid // PAGE, pages
                pages += 1
            balances[entries[at].page * PAGE + vid % PAGE] = amount
    return pages


def shifted_accounts(state, vid_by, xway_by):
    """The ledger of vehicles with other numbers, whose pages begin elsewhere."""
    most = 2 * int(state["pages"][0]) + 1  # a page may fall on two
    entry = np.full(1 << (3 * most // 2).bit_length(), LEDGER["entry"][0])
    balance = np.zeros(most * PAGE, np.int64)
    pages = move_accounts(state["entry"], state["balance"], vid_by, entry, balance)
    return {
        **state, "pages": np.array([pages], np.int64), "entry": entry,
        "balance": balance[: max(pages, 1) * PAGE],
    }  # fmt: skip
