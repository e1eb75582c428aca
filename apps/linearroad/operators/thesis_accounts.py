"""Rule set `thesis`: discounts, toll notifications, charges, credits, balances and expenditures.

The discount of a frequent traveller depends on the account over all expressways, so everything that
has to do with money is decided here, for all parts that share accounts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from linearroad.operators.accounts import BALANCES
from linearroad.operators.check import room
from linearroad.operators.thesis_tolls import CREDIT, ENTERED
from linearroad.schema import (
    ASKS_BALANCE,
    ASKS_EXPENDITURE,
    BALANCE,
    CROSSED,
    EXPENDITURE,
    REQUEST,
    TOLL,
    TRIGGER,
)
from linearroad.tables.ledger import LEDGER, balance_of, charge_all, ledger_of
from xstream.kernels.hashtable import EMPTY, entry_of, with_room

__all__ = ["thesis_accounts"]

#: Indices of `progress`: the second that is being collected, and the numbers of its parts that have
#: arrived, of waiting entries, of waiting requests, and of travellers.
_SECOND, _CAME, _ENTERED, _ASKED, _TRAVELLERS = range(5)

#: A vehicle on an expressway (`key`): the toll issued for its segment, and today's expenditure.
TRAVELLER = np.dtype([("key", "i8"), ("issued", "i8"), ("spent", "i8")])


class Waiting(NamedTuple):
    """What a second has brought so far, and the part that each came from."""

    entered: Any
    entered_part: Any
    asked: Any
    asked_part: Any


class Answers(NamedTuple):
    """The answers of a second, by column."""

    kind: Any
    who: Any
    value: Any
    amount: Any
    part: Any


@numba.njit
def gathered(waiting, progress, entered, request, part):
    """Add the entries and requests of a part; returns all that wait, which may have moved."""
    n, m = progress[_ENTERED], progress[_ASKED]
    waiting = Waiting(
        room(waiting.entered, n + len(entered)), room(waiting.entered_part, n + len(entered)),
        room(waiting.asked, m + len(request)), room(waiting.asked_part, m + len(request)),
    )  # fmt: skip
    for i in range(len(entered)):
        waiting.entered[n + i], waiting.entered_part[n + i] = entered[i], part
    progress[_ENTERED] += len(entered)
    for i in range(len(request)):
        if request[i].type == ASKS_BALANCE or request[i].type == ASKS_EXPENDITURE:
            waiting.asked[m], waiting.asked_part[m] = request[i], part
            m += 1
    progress[_ASKED] = m
    return waiting


@numba.njit(inline="always")
def traveller_key(vid, xway):
    """A vehicle on an expressway as one number."""
    return (np.int64(xway) << 31) + vid


@numba.njit
def notify(waiting, progress, ledger, least, answers):
    """One notification per segment entered, with the discount of this moment; returns how many.

    The toll in `waiting` becomes the toll that is issued.
    """
    told = 0
    for i in range(progress[_ENTERED]):
        one = waiting.entered[i]
        if one.actions & TRIGGER == 0:
            continue
        if one.toll > 0 and balance_of(ledger, np.int64(one.vid)) >= least:
            one.toll //= 2
        answers.kind[told], answers.who[told], answers.value[told] = TOLL, one.vid, one.speed
        answers.amount[told], answers.part[told] = one.toll, waiting.entered_part[i]
        told += 1
    return told


@numba.njit
def charge(waiting, progress, travellers, ledger, credit):
    """Apply the charges and credits of a second; returns travellers and ledger, which may have
    moved."""
    n = progress[_ENTERED]
    travellers = with_room(travellers, progress[_TRAVELLERS] + n)
    vid, amount, charges = np.empty(2 * n, np.int32), np.empty(2 * n, np.int64), 0
    for i in range(n):
        one = waiting.entered[i]
        me = travellers[entry_of(travellers, traveller_key(one.vid, one.xway))]
        if me.key == EMPTY:
            me.key, me.issued, me.spent = traveller_key(one.vid, one.xway), 0, 0
            progress[_TRAVELLERS] += 1
        if one.actions & CROSSED and me.issued != 0:
            vid[charges], amount[charges] = one.vid, me.issued
            me.spent += me.issued
            charges += 1
        if one.actions & TRIGGER:
            me.issued = one.toll
        if one.actions & CREDIT and credit != 0:
            vid[charges], amount[charges] = one.vid, -credit
            me.spent -= credit
            charges += 1
    return travellers, charge_all(ledger, vid[:charges], amount[:charges])


@numba.njit
def answer(waiting, progress, travellers, ledger, answers, told):
    """Answer the requests of a second, after its charges."""
    for i in range(progress[_ASKED]):
        one, at = waiting.asked[i], told + i
        answers.who[at], answers.value[at] = one.qid, 0
        answers.part[at] = waiting.asked_part[i]
        if one.type == ASKS_BALANCE:
            answers.kind[at] = BALANCE
            answers.amount[at] = balance_of(ledger, np.int64(one.vid))
        else:
            me = travellers[entry_of(travellers, traveller_key(one.vid, one.xway))]
            answers.kind[at], answers.amount[at] = EXPENDITURE, 0
            if me.key != EMPTY:
                answers.amount[at] = me.spent


@numba.njit
def settle(out, waiting, progress, travellers, ledger, tariff):
    """Answer a second for which all parts have arrived; returns travellers and ledger."""
    credit, least = tariff
    most = progress[_ENTERED] + progress[_ASKED]
    answers = Answers(
        np.empty(most, np.int8), np.empty(most, np.int32), np.empty(most, np.int32),
        np.empty(most, np.int64), np.empty(most, np.int32),
    )  # fmt: skip
    told = notify(waiting, progress, ledger, least, answers)
    travellers, ledger = charge(waiting, progress, travellers, ledger, credit)
    answer(waiting, progress, travellers, ledger, answers, told)
    n = told + progress[_ASKED]
    out.emit_at(
        0, progress[_SECOND], True, answers.kind[:n], answers.who[:n], answers.value[:n],
        answers.amount[:n], answers.part[:n],
    )  # fmt: skip
    progress[_CAME] = progress[_ENTERED] = progress[_ASKED] = 0
    return travellers, ledger


@xs.kernel(
    state={
        "progress": np.array([-1, 0, 0, 0, 0], np.int64),
        "entered": np.zeros(16, ENTERED),
        "entered_part": np.zeros(16, np.int32),
        "asked": np.zeros(16, REQUEST),
        "asked_part": np.zeros(16, np.int32),
        "traveller": np.full(1024, np.array((EMPTY, 0, 0), TRAVELLER)),
    }
    | LEDGER,
    out=BALANCES,
    at_end=True,
)
def thesis_accounts(part, time, request, entered, parts, tariff, state, out):
    """The accounts of vehicles in several parts, whose tuples arrive merged by time.

    A second is settled when all `parts` have arrived, or when a later one begins. `tariff`: the
    credit of an exit before an accident, and the balance from which tolls are halved.
    """
    progress, travellers = state.progress, state.traveller
    waiting = Waiting(state.entered, state.entered_part, state.asked, state.asked_part)
    ledger = ledger_of(state)
    if progress[_CAME] > 0 and (out.ended or time > progress[_SECOND]):
        travellers, ledger = settle(out, waiting, progress, travellers, ledger, tariff)
    if out.ended:
        return
    waiting = gathered(waiting, progress, entered, request, part)
    progress[_SECOND] = time
    progress[_CAME] += 1
    if progress[_CAME] == parts:
        settle(out, waiting, progress, travellers, ledger, tariff)
