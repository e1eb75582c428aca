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

#: Words of `progress`: the second that is being collected (-1: none), how many of its parts have
#: come, and how many balances were requested.
_SECOND, _CAME, _ASKED = range(3)


class Asked(NamedTuple):
    """Requests for balances that wait for the charges of their second."""

    vid: Any
    qid: Any
    part: Any


@numba.njit
def put_requests(asked, progress, request, part):
    """Add the balance requests of a part; returns all that wait, which may have moved."""
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
    """Answer the requests of a second; the charges of all parts have been applied."""
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

    All charges of a second are applied before its requests are answered: when all `parts` have
    come, or when a later second begins. Only vehicles that were charged have an account; the
    balance of all others is 0.
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
