"""Accounts: charges to every vehicle, and the answers to balance requests."""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.queries.layout import REQUEST_WIDTH, column
from linearroad.queries.operators.check import room
from linearroad.queries.operators.ledger import LEDGER, balance_of, charge_all

__all__ = ["BALANCES", "accounts", "accounts_of_files", "settle"]

#: Balances as they are answered, ordered by time; `part` says whose request it was.
BALANCES = {
    "balance_time": column("int32"),
    "balance_part": column("int32"),
    "balance_qid": column("int32"),
    "bal": column("int64"),
}
CHARGED, ASKED = range(2)
FEW_SECONDS = 3600


@xs.kernel(
    state=LEDGER, out={"time": int, "qid": column("int32"), "balance": column("int64")}
)  # fmt: skip
def accounts(time, request, charge_vid, charge, state, out):
    """Only vehicles that were ever charged have an account; everybody else's balance is 0."""
    entries, balances = charge_all(
        state.pages, state.entry, state.balance, charge_vid, charge
    )  # fmt: skip
    asked = 0
    rows = len(request) // REQUEST_WIDTH
    qid, balance = np.empty(rows, np.int32), np.empty(rows, np.int64)
    for i in range(rows):
        if request[i * REQUEST_WIDTH] == 2:
            qid[asked] = request[i * REQUEST_WIDTH + 3]
            balance[asked] = balance_of(
                entries, balances, np.int64(request[i * REQUEST_WIDTH + 1])
            )  # fmt: skip
            asked += 1
    out.emit_at(0, time, qid[:asked], balance[:asked])


@numba.njit
def settle(pages, entries, balances, charge_time, charge_vid, charge, ask_time, ask_vid):
    """Charges and requests, both in the order of time: a second's charges come first.

    The answers, and the ledger as it is now.
    """
    answers, at = np.empty(len(ask_vid), np.int64), 0
    for i in range(len(ask_vid) + 1):
        begin = at
        while at < len(charge) and (i == len(ask_vid) or charge_time[at] <= ask_time[i]):
            at += 1
        if at > begin:
            entries, balances = charge_all(
                pages, entries, balances, charge_vid[begin:at], charge[begin:at]
            )
        if i < len(ask_vid):
            answers[i] = balance_of(entries, balances, np.int64(ask_vid[i]))
    return answers, entries, balances


@numba.njit
def order_by_time(times, many, first, until):
    """The places of what is due before `until`, ordered by second, stable; none is before `first`.

    Where seconds are few and rows are many, they are counted instead of compared.
    """
    if until - first > 4 * many + FEW_SECONDS:
        order = np.argsort(times[:many], kind="mergesort")
        due = 0
        for i in range(many):
            due += times[i] < until
        return order[:due]
    begins = np.zeros(until - first + 1, np.int64)
    for i in range(many):
        if times[i] < until:
            begins[times[i] - first + 1] += 1
    for second in range(1, len(begins)):
        begins[second] += begins[second - 1]
    order = np.empty(begins[-1], np.int64)
    for i in range(many):
        if times[i] < until:
            order[begins[times[i] - first]] = i
            begins[times[i] - first] += 1
    return order


@numba.njit
def span(times, many, first, until):
    """The seconds from `first` until `until`, widened to hold the first `many` times."""
    for i in range(many):
        first, until = min(first, np.int64(times[i])), max(until, np.int64(times[i]) + 1)
    return first, until


@numba.njit
def keep_the_rest(times, many, until):
    """Which of the first `many` are not due before `until`."""
    rest = np.empty(many, np.int64)
    kept = 0
    for i in range(many):
        if times[i] >= until:
            rest[kept] = i
            kept += 1
    return rest[:kept]


@xs.kernel(
    state={
        "count": np.zeros(2, np.int64),
        "charge_time": np.zeros(256, np.int32),
        "charge_vid": np.zeros(256, np.int32),
        "charge": np.zeros(256, np.int64),
        "ask_time": np.zeros(16, np.int32),
        "ask_vid": np.zeros(16, np.int32),
        "ask_qid": np.zeros(16, np.int32),
        "ask_part": np.zeros(16, np.int32),
    }
    | LEDGER,
    out={"upto": int} | BALANCES,
)
def accounts_of_files(part, time, request, charge_vid, charge, files, state, out):
    """The accounts of vehicles that may be on any of several files, which come one after another.

    Parts 0 to `files` - 1 bring seconds. The next part brings none but says, with its time, up to
    which second all files have been told: that far, charges and requests are settled.
    """
    count = state.count
    if part < files:
        asks = len(request) // REQUEST_WIDTH
        c, q = count[CHARGED], count[ASKED]
        needed = c + len(charge)
        times, vids = room(state.charge_time, needed), room(state.charge_vid, needed)
        amounts = room(state.charge, needed)
        for i in range(len(charge)):
            times[c + i], vids[c + i], amounts[c + i] = time, charge_vid[i], charge[i]
        count[CHARGED] = needed
        ask_times, ask_vids = room(state.ask_time, q + asks), room(state.ask_vid, q + asks)
        ask_qids, ask_parts = room(state.ask_qid, q + asks), room(state.ask_part, q + asks)
        for i in range(asks):
            at = i * REQUEST_WIDTH
            if request[at] == 2:
                ask_times[q], ask_vids[q] = time, request[at + 1]
                ask_qids[q], ask_parts[q] = request[at + 3], part
                q += 1
        count[ASKED] = q
        return
    c, q = count[CHARGED], count[ASKED]
    times, vids, amounts = state.charge_time, state.charge_vid, state.charge
    ask_times, ask_vids = state.ask_time, state.ask_vid
    ask_qids, ask_parts = state.ask_qid, state.ask_part
    first, until = span(times, c, np.int64(2**40), np.int64(0))
    first, until = span(ask_times, q, first, until)
    until = min(until, time + 1)
    first = min(first, until)
    due, asked = order_by_time(times, c, first, until), order_by_time(ask_times, q, first, until)
    answers, _, _ = settle(
        state.pages, state.entry, state.balance, times[due], vids[due], amounts[due],
        ask_times[asked], ask_vids[asked],
    )  # fmt: skip
    out.emit_at(0, until - 1, ask_times[asked], ask_parts[asked], ask_qids[asked], answers)
    rest = keep_the_rest(times, c, until)
    for i in range(len(rest)):
        k = rest[i]
        times[i], vids[i], amounts[i] = times[k], vids[k], amounts[k]
    count[CHARGED] = len(rest)
    rest = keep_the_rest(ask_times, q, until)
    for i in range(len(rest)):
        k = rest[i]
        ask_times[i], ask_vids[i] = ask_times[k], ask_vids[k]
        ask_qids[i], ask_parts[i] = ask_qids[k], ask_parts[k]
    count[ASKED] = len(rest)
