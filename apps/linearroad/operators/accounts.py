"""Accounts: charges to every vehicle, and the answers to balance requests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from linearroad.operators.check import room
from linearroad.schema import ANSWERS, ASKS_BALANCE, BALANCE, column
from linearroad.tables.ledger import LEDGER, balance_of, charge_all, ledger_of

__all__ = ["BALANCES", "accounts"]

#: Answers, and the part that each request came from.
BALANCES = ANSWERS | {"asker": column("int32")}

#: Indices of `progress`: the second that is being collected (-1: none), and the numbers of its
#: parts that have arrived, of requested balances, and of waiting charges.
_SECOND, _CAME, _ASKED, _CHARGED = range(4)


class Asked(NamedTuple):
    """Requests for balances that wait for the charges of their second."""

    vid: Any
    qid: Any
    part: Any


class Charges(NamedTuple):
    """Charges of a second that wait for those of other parts.

    They are applied together: each costs two cache misses, and the more there are, the more of
    these overlap.
    """

    vid: Any
    amount: Any


@numba.njit
def with_requests(asked, progress, request, part):
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
def with_charges(charges, progress, vid, amount):
    """Add the charges of a part; returns all that wait, which may have moved."""
    n, upto = progress[_CHARGED], progress[_CHARGED] + len(vid)
    charges = Charges(room(charges.vid, upto), room(charges.amount, upto))
    charges.vid[n:upto], charges.amount[n:upto] = vid, amount
    progress[_CHARGED] = upto
    return charges


@numba.njit
def settle(out, asked, charges, progress, ledger):
    """Apply the charges of a second and answer its requests; returns the ledger, which may have
    moved."""
    n, m = progress[_ASKED], progress[_CHARGED]
    ledger = charge_all(ledger, charges.vid[:m], charges.amount[:m])
    second = progress[_SECOND]
    kind, value = np.full(n, BALANCE, np.int8), np.full(n, second, np.int32)  # exact at `second`
    amount = np.empty(n, np.int64)
    for i in range(n):
        amount[i] = balance_of(ledger, np.int64(asked.vid[i]))
    out.emit_at(0, second, True, kind, asked.qid[:n], value, amount, asked.part[:n])
    progress[_CAME] = progress[_ASKED] = progress[_CHARGED] = 0
    return ledger


@xs.kernel(
    state={
        "progress": np.array([-1, 0, 0, 0], np.int64),
        "ask_vid": np.zeros(16, np.int32),
        "ask_qid": np.zeros(16, np.int32),
        "ask_part": np.zeros(16, np.int32),
        "charge_vid": np.zeros(16, np.int32),
        "charge": np.zeros(16, np.int64),
    }
    | LEDGER,
    out=BALANCES,
    at_end=True,
)
def accounts(part, time, request, charge_vid, charge, parts, state, out):
    """The accounts of vehicles in several parts, whose tuples arrive merged by time.

    All charges of a second are applied before its requests are answered: when all `parts` have
    arrived, or when a later second begins. Only vehicles that were charged have an account; the
    balance of all others is 0.
    """
    progress, charges = state.progress, Charges(state.charge_vid, state.charge)
    asked = Asked(state.ask_vid, state.ask_qid, state.ask_part)
    ledger = ledger_of(state)
    if progress[_CAME] > 0 and (out.ended or time > progress[_SECOND]):
        ledger = settle(out, asked, charges, progress, ledger)
    if out.ended:
        return
    charges = with_charges(charges, progress, charge_vid, charge)
    asked = with_requests(asked, progress, request, part)
    progress[_SECOND] = time
    progress[_CAME] += 1
    if progress[_CAME] == parts:
        settle(out, asked, charges, progress, ledger)
