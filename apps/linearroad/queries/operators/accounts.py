"""Accounts: charges to every vehicle, and the answers to balance requests."""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.queries.layout import REQUEST_WIDTH, column

__all__ = ["accounts"]


@numba.njit(inline="always")
def account_at(vids, vid):
    """Where the account of a vehicle is, or would be."""
    mask = len(vids) - 1
    at = ((vid * -7046029254386353131) >> 32) & mask
    while vids[at] != -1 and vids[at] != vid:
        at = (at + 1) & mask
    return at


@numba.njit
def larger(vids, balances):
    """Accounts with twice the room."""
    old_vids, old_balances = vids.copy(), balances.copy()
    vids, balances = xs.grow(vids, 2 * len(vids)), xs.grow(balances, 2 * len(balances))
    vids[:] = -1
    balances[:] = 0
    for i in range(len(old_vids)):
        if old_vids[i] != -1:
            at = account_at(vids, np.int64(old_vids[i]))
            vids[at], balances[at] = old_vids[i], old_balances[i]
    return vids, balances


@xs.kernel(
    state={
        "count": np.zeros(1, np.int64),
        "vid": np.full(1024, -1, np.int32),
        "balance": np.zeros(1024, np.int64),
    },
    out={"time": int, "qid": column("int32"), "balance": column("int64")},
)
def accounts(time, request, charge_vid, charge, state, out):
    """Only vehicles that were ever charged have an account; everybody else's balance is 0."""
    vids, balances, count = state.vid, state.balance, state.count
    for i in range(len(charge_vid)):
        if 3 * (count[0] + 1) > 2 * len(vids):
            vids, balances = larger(vids, balances)
        at = account_at(vids, np.int64(charge_vid[i]))
        if vids[at] == -1:
            vids[at] = charge_vid[i]
            count[0] += 1
        balances[at] += charge[i]
    asked = 0
    rows = len(request) // REQUEST_WIDTH
    qid, balance = np.empty(rows, np.int32), np.empty(rows, np.int64)
    for i in range(rows):
        if request[i * REQUEST_WIDTH] == 2:
            at = account_at(vids, np.int64(request[i * REQUEST_WIDTH + 1]))
            qid[asked] = request[i * REQUEST_WIDTH + 3]
            balance[asked] = balances[at] if vids[at] != -1 else 0
            asked += 1
    out.emit_at(0, time, qid[:asked], balance[:asked])
