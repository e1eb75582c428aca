"""Between workers and the accounts: many seconds at once, rows with their times.

A worker hands over what it has answered, what is to be charged, and who asks for a balance, when it
has worked off the rows it was given. Accounts belong to all workers, so the main thread keeps them:
it puts the same seconds of all workers together and answers the rest.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.queries.layout import REQUEST_WIDTH, column
from linearroad.queries.operators.accounts import settle
from linearroad.queries.operators.answers import COLUMNS
from linearroad.queries.operators.check import room
from linearroad.queries.operators.ledger import LEDGER

__all__ = ["hand_over", "put_in_order", "settle_accounts"]

ANSWERED, CHARGED, ASKED, UPTO, ENDED = range(5)

#: Tables of answers, charges and requests for balances, their columns and dtypes.
TABLES = {
    "kind": "int8", "time": "int32", "who": "int32", "value": "int32", "amount": "int64",
    "charge_time": "int32", "charge_vid": "int32", "charge": "int64",
    "ask_time": "int32", "ask_vid": "int32", "ask_qid": "int32",
}  # fmt: skip
#: No second has been handed over yet.
STATE = {"count": np.array([0, 0, 0, -1, 0], np.int64)} | {
    name: np.zeros(1024, dtype) for name, dtype in TABLES.items()
}
HANDED_OVER = {"upto": int} | {name: column(dtype) for name, dtype in TABLES.items()}


@numba.njit
def put_answers(kinds, times, whos, values, amounts, at, kind, time, who, value, amount):
    """Answers of one kind and second from row `at` on; where the next ones go."""
    for i in range(len(who)):
        kinds[at], times[at], whos[at] = kind, time, who[i]
        values[at] = value[i]
        amounts[at] = amount[i]
        at += 1
    return at


@numba.njit
def put_second(
    kinds, times, whos, values, amounts, at, time, toll_vid, toll_lav, toll, alert_vid, alert_seg,
    spent_qid, spent, travel_qid, travel_seconds, travel_toll,
):  # fmt: skip
    """All answers of a second but balances, from row `at` on; where the next ones go."""
    at = put_answers(kinds, times, whos, values, amounts, at, 0, time, toll_vid, toll_lav, toll)
    for i in range(len(alert_vid)):
        kinds[at], times[at], whos[at] = 1, time, alert_vid[i]
        values[at], amounts[at] = alert_seg[i], 0
        at += 1
    for i in range(len(spent)):
        kinds[at], times[at], whos[at] = 3, time, spent_qid[i]
        values[at], amounts[at] = 0, spent[i]
        at += 1
    return put_answers(
        kinds, times, whos, values, amounts, at, 4, time, travel_qid, travel_seconds, travel_toll
    )


@xs.kernel(state=STATE, out=HANDED_OVER, at_end=True)
def hand_over(
    part, time, request, last, toll_vid, toll_lav, toll, alert_vid, alert_seg, charge_vid, charge,
    spent_qid, spent, travel_qid, travel_seconds, travel_toll, parts, state, out,
):  # fmt: skip
    """Gathers seconds until the `last` of the rows that were read, or the end of the stream.

    `parts` copies of the same seconds come in, each with its number; all have to come to their
    `last`.
    """
    count = state.count
    kinds, times, whos, values = state.kind, state.time, state.who, state.value
    amounts, asks = state.amount, len(request) // REQUEST_WIDTH
    charge_times, charge_vids, charges = state.charge_time, state.charge_vid, state.charge
    ask_times, ask_vids, ask_qids = state.ask_time, state.ask_vid, state.ask_qid
    needed = count[ANSWERED] + len(toll) + len(alert_vid) + len(spent) + len(travel_qid)
    kinds, times, whos = room(kinds, needed), room(times, needed), room(whos, needed)
    values, amounts = room(values, needed), room(amounts, needed)
    count[ANSWERED] = put_second(
        kinds, times, whos, values, amounts, count[ANSWERED], time, toll_vid, toll_lav, toll,
        alert_vid, alert_seg, spent_qid, spent, travel_qid, travel_seconds, travel_toll,
    )  # fmt: skip
    needed = count[CHARGED] + len(charge)
    charge_times, charges = room(charge_times, needed), room(charges, needed)
    charge_vids = room(charge_vids, needed)
    needed = count[ASKED] + asks
    ask_times, ask_vids = room(ask_times, needed), room(ask_vids, needed)
    ask_qids = room(ask_qids, needed)
    for i in range(len(charge)):
        k = count[CHARGED] + i
        charge_times[k], charge_vids[k], charges[k] = time, charge_vid[i], charge[i]
    count[CHARGED] += len(charge)
    for i in range(asks):
        if request[i * REQUEST_WIDTH] == 2:
            k = count[ASKED]
            ask_times[k], ask_vids[k] = time, request[i * REQUEST_WIDTH + 1]
            ask_qids[k] = request[i * REQUEST_WIDTH + 3]
            count[ASKED] += 1
    if not out.ended:
        count[UPTO] = time
        count[ENDED] += last
    if count[ENDED] == parts or out.ended:
        a, c, q = count[ANSWERED], count[CHARGED], count[ASKED]
        out.emit_at(
            0, count[UPTO], kinds[:a], times[:a], whos[:a], values[:a], amounts[:a],
            charge_times[:c], charge_vids[:c], charges[:c],
            ask_times[:q], ask_vids[:q], ask_qids[:q],
        )  # fmt: skip
        count[:UPTO] = 0
        count[ENDED] = 0


@xs.kernel(
    state=LEDGER,
    out={"balance_time": column("int32"), "balance_qid": column("int32"), "bal": column("int64")},
)
def settle_accounts(charge_time, charge_vid, charge, ask_time, ask_vid, ask_qid, state, out):
    """Charges and requests of many seconds, each in the order of time: a second's charges first."""
    balance, _, _ = settle(
        state.pages, state.entry, state.balance, charge_time, charge_vid, charge, ask_time, ask_vid
    )
    out.emit_at(0, ask_time, ask_qid, balance)


@xs.kernel(out=COLUMNS)
def put_in_order(
    kind, time, who, value, amount, balance_time, balance_qid, bal, emit_ms, out
):  # fmt: skip
    """Balances among the other answers, by time. `emit_ms` < 0: each answer leaves at its time."""
    n = len(kind) + len(bal)
    kinds, times, emits = np.empty(n, np.int8), np.empty(n, np.int32), np.empty(n, np.int64)
    whos, values, amounts = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64)
    a, b = 0, 0
    for i in range(n):
        if b == len(bal) or (a < len(kind) and time[a] <= balance_time[b]):
            kinds[i], times[i], whos[i] = kind[a], time[a], who[a]
            values[i], amounts[i] = value[a], amount[a]
            a += 1
        else:
            kinds[i], times[i], whos[i] = 2, balance_time[b], balance_qid[b]
            values[i], amounts[i] = 0, bal[b]
            b += 1
        emits[i] = emit_ms if emit_ms >= 0 else 1000 * np.int64(times[i])
    out.emit(kinds, times, emits, whos, values, amounts)
