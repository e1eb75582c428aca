"""Digests: what was answered, in any order, as a few numbers that copies can be compared by.

An answer is weighed by a hash of everything but who it is for, and the digest of a minute's answers
of a kind is their number and the sums of weight, weight * who and weight * who^2, modulo 2^64.
Copies of traffic have shifted VIDs and QIDs, and these sums say what they would be without that
(`linearroad.queries.comparing`), so the engine need not know whose copy it works on.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs

__all__ = ["DIGEST_WIDTH", "KINDS", "TOLD", "digest_answers", "digest_balances", "tell", "weight"]

KINDS = 5
COUNT, WEIGHT, FIRST, SECOND = range(4)
DIGEST_WIDTH = 4  # numbers a kind of answers
BALANCE = 2  # the kind
MOST_SECONDS = 7 * 24 * 3600

#: How many answers of each kind there are to a second, and whether more seconds have been read.
TOLD = {
    "time": int, "last": bool, "tolls": int, "alerts": int, "balances": int, "spent": int,
    "travels": int,
}  # fmt: skip


@numba.njit(inline="always")
def weight(kind, time, value, amount):
    """A hash of what an answer says."""
    h = np.int64(kind) + (np.int64(time) << 3)
    h = (h ^ (h >> 31)) * np.int64(0x7FB5D329728EA185)
    h = (h ^ (h >> 27) ^ np.int64(value)) * np.int64(-0x7E25210B43D22BB3)
    h = (h ^ (h >> 33) ^ amount) * np.int64(-0x61C8864680B583EB)
    return h ^ (h >> 29)


@numba.njit(inline="always")
def add(sums, at, kind, time, who, value, amount):
    """Count an answer in the digest that begins at `at`."""
    w, whom = weight(kind, time, value, amount), np.int64(who)
    sums[at + COUNT] += 1
    sums[at + WEIGHT] += w
    sums[at + FIRST] += w * whom
    sums[at + SECOND] += w * whom * whom


@numba.njit
def minute_of(sums, time, width):
    """Where a minute's digests begin, `width` numbers, and the sums with room for them."""
    if time >= MOST_SECONDS:
        raise ValueError("digests are kept for a week of stream time, and here is a later row")
    at = time // 60 * width
    return at, xs.grow(sums, at + width)


@xs.kernel(
    state={"sums": np.zeros(KINDS * DIGEST_WIDTH, np.int64), "unanswerable": np.zeros(1, np.int64)},
    out=TOLD,
)
def digest_answers(
    time, toll_vid, toll_lav, toll, alert_vid, alert_seg, last, spent_qid, spent, travel_qid,
    travel_seconds, travel_toll, state, out,
):  # fmt: skip
    """Digests of all answers but balances, by minute and kind, in the state; how many there are."""
    begin, sums = minute_of(state.sums, time, KINDS * DIGEST_WIDTH)
    for i in range(len(toll)):
        add(sums, begin, 0, time, toll_vid[i], toll_lav[i], toll[i])
    for i in range(len(alert_vid)):
        add(sums, begin + DIGEST_WIDTH, 1, time, alert_vid[i], alert_seg[i], 0)
    for i in range(len(spent)):
        add(sums, begin + 3 * DIGEST_WIDTH, 3, time, spent_qid[i], 0, spent[i])
    for i in range(len(travel_qid)):
        at = begin + 4 * DIGEST_WIDTH
        add(sums, at, 4, time, travel_qid[i], travel_seconds[i], travel_toll[i])
        state.unanswerable[0] += travel_seconds[i] == -1
    out.emit(time, last, len(toll), len(alert_vid), 0, len(spent), len(travel_qid))


@xs.kernel(state={"sums": np.zeros(DIGEST_WIDTH, np.int64)}, out=TOLD)
def digest_balances(upto, time, part, qid, balance, parts, state, out):
    """Digests of balances, by minute and by the part of the query that asked, in the state."""
    sums, since = state.sums, upto
    for i in range(len(qid)):
        begin, sums = minute_of(sums, np.int64(time[i]), parts * DIGEST_WIDTH)
        at = begin + part[i] * DIGEST_WIDTH
        add(sums, at, BALANCE, time[i], qid[i], 0, balance[i])
        since = min(since, np.int64(time[i]))
    out.emit(since, True, 0, 0, len(qid), 0, 0)


@xs.kernel(
    state={"came": np.zeros(1, np.int64), "told": np.zeros(KINDS, np.int64)},
    out={"time": int, "told": xs.Out(np.dtype("int64"), start="given")},
)
def tell(part, time, last, tolls, alerts, balances, spent, travels, parts, state, out):
    """How many answers all copies gave, when all have worked off the rows that were read."""
    told = state.told
    told[0] += tolls
    told[1] += alerts
    told[2] += balances
    told[3] += spent
    told[4] += travels
    state.came[0] += last
    if state.came[0] == parts:
        out.emit_at(0, time, told)
        state.came[0] = 0
        told[:] = 0
