"""Accounts: charges to every vehicle, and the answers to balance requests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from linearroad.operators.check import room
from linearroad.schema import ANSWERS, ASKS_BALANCE, BALANCE, column
from linearroad.tables.ledger import LEDGER, balance_of, charge_all

__all__ = ["BALANCES", "accounts"]

#: Answers, and the part that each request came from.
BALANCES = ANSWERS | {"asker": column("int32")}

#: The second whose parts are being gathered, how many have come, and how many balances are asked
#: for; -1: no second.
_SECOND, _CAME, _ASKED = range(3)


class Asked(NamedTuple):
    """Requests for balances that wait for the charges of their second."""

    vid: Any
    qid: Any
    part: Any


@numba.njit
def put_requests(asked, progress, request, part):
    """Add the balance requests among others; what waits as it is now."""
    n = progress[_ASKED]
    for i in range(len(request)):
        if request[i].type == ASKS_BALANCE:
            asked = Asked(
                room(asked.vid, n + 1), room(asked.qid, n + 1), room(asked.part, n + 1)
            )  # fmt: skip
            asked.vid[n], asked.qid[n], asked.part[n] = request[i].vid, request[i].qid, part
            n += 1
    progress[_ASKED] = n
    return asked


@numba.njit
def answer(out, asked, progress, entries, balances):
    """Every part's charges of the second are in: its requests can be answered."""
    n = progress[_ASKED]
    kind, value = np.full(n, BALANCE, np.int8), np.zeros(n, np.int32)
    amount = np.empty(n, np.int64)
    for i in range(n):
        amount[i] = balance_of(entries, balances, np.int64(asked.vid[i]))
    second = progress[_SECOND]
    out.emit_at(0, second, True, kind, asked.qid[:n], value, amount, asked.part[:n])
    progress[_CAME] = progress[_ASKED] = 0


@xs.kernel(
    state={
        "progress": np.array([-1, 0, 0], np.int64),
        "ask_vid": np.zeros(16, np.int32),
        "ask_qid": np.zeros(16, np.int32),
        "ask_part": np.zeros(16, np.int32),
    }
    | LEDGER,
    out=BALANCES,
    at_end=True,
)
def accounts(part, time, request, charge_vid, charge, parts, state, out):
    """The accounts of vehicles that may be in any of several parts, which come merged by time.

    All charges of a second count before its requests are answered: when every one of `parts` has
    come, or else when a later second begins. Only vehicles that were ever charged have an account;
    everybody else's balance is 0.
    """
    progress = state.progress
    asked = Asked(state.ask_vid, state.ask_qid, state.ask_part)
    entries, balances = state.entry, state.balance
    if progress[_CAME] > 0 and (out.ended or time > progress[_SECOND]):
        answer(out, asked, progress, entries, balances)
    if out.ended:
        return
    entries, balances = charge_all(state.pages, entries, balances, charge_vid, charge)
    asked = put_requests(asked, progress, request, part)
    progress[_SECOND] = time
    progress[_CAME] += 1
    if progress[_CAME] == parts:
        answer(out, asked, progress, entries, balances)
