"""All answers of a second in one table: the last operator before the sinks."""

from __future__ import annotations

import numpy as np

import xstream as xs

__all__ = ["COLUMNS", "answers", "as_scheduled"]

#: Columns of answers: type, the time of its row, when it left the engine (ms), VID or QID, LAV or
#: accident segment or travel time, toll or balance. Indices run on, so that seconds can be joined.
COLUMNS = {
    "kind": xs.Out(np.int8, start="running"),
    "time": xs.Out(np.int32, start="running"),
    "emit": xs.Out(np.int64, start="running"),
    "who": xs.Out(np.int32, start="running"),
    "value": xs.Out(np.int32, start="running"),
    "amount": xs.Out(np.int64, start="running"),
}


@xs.kernel
def as_scheduled(time):
    """When answers leave an engine that is not paced: at their own time, in milliseconds."""
    return 1000 * time


@xs.kernel(out=COLUMNS)
def answers(
    time, toll_vid, toll_lav, toll, alert_vid, alert_seg, balance_qid, balance, spent_qid, spent,
    travel_qid, travel_seconds, travel_toll, emit_ms, out,
):  # fmt: skip
    """One row an answer, in the order of their types."""
    tolls, alerts, balances = len(toll), len(alert_vid), len(balance_qid)
    spents, travels = len(spent_qid), len(travel_qid)
    n = tolls + alerts + balances + spents + travels
    kind, times, emits = np.empty(n, np.int8), np.empty(n, np.int32), np.empty(n, np.int64)
    who, value, amount = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64)
    times[:] = time
    emits[:] = emit_ms
    at = 0
    for i in range(tolls):
        kind[at], who[at], value[at], amount[at] = 0, toll_vid[i], toll_lav[i], toll[i]
        at += 1
    for i in range(alerts):
        kind[at], who[at], value[at], amount[at] = 1, alert_vid[i], alert_seg[i], 0
        at += 1
    for i in range(balances):
        kind[at], who[at], value[at], amount[at] = 2, balance_qid[i], 0, balance[i]
        at += 1
    for i in range(spents):
        kind[at], who[at], value[at], amount[at] = 3, spent_qid[i], 0, spent[i]
        at += 1
    for i in range(travels):
        kind[at], who[at] = 4, travel_qid[i]
        value[at], amount[at] = travel_seconds[i], travel_toll[i]
        at += 1
    out.emit(kind, times, emits, who, value, amount)
