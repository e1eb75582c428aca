"""Digests of answers, which do not depend on their order, and by which copies are compared.

The weight of an answer is a hash of everything except for its VID or QID (`who`). The digest of the
answers of one kind in one minute is their number and the sums of weight, weight * who and weight *
who^2, modulo 2^64. Copies have shifted VIDs and QIDs, and `linearroad.output.digests` computes from
these sums what they would be without the shift.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.schema import ALERT, BALANCE, KINDS, TRAVEL_TIME, column

__all__ = [
    "COUNTS",
    "DIGEST_WIDTH",
    "add",
    "answer_counts",
    "digest_answers",
    "digest_balances",
    "weight",
]

COUNT, WEIGHT, FIRST, SECOND = range(4)
DIGEST_WIDTH = 4  # numbers per kind of answers
MOST_SECONDS = 7 * 24 * 3600

#: The number of answers of each kind to a second, and whether no later second has been read.
COUNTS = {"time": int, "last": bool, "count": column("int64")}


@numba.njit(inline="always")
def weight(kind, time, value, amount):
    """A hash of the contents of an answer."""
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
    """The index of the `width` numbers of a minute's digests, and the sums with room for them."""
    if time >= MOST_SECONDS:
        raise ValueError("digests cover one week of stream time, and a row comes later")
    at = time // 60 * width
    return at, xs.grow(sums, at + width)


@xs.kernel(
    state={"sums": np.zeros(KINDS * DIGEST_WIDTH, np.int64), "unanswerable": np.zeros(1, np.int64)},
    out=COUNTS,
)
def digest_answers(time, last, kind, who, value, amount, xway_by, state, out):
    """Keeps digests of answers by minute and kind in the state; emits the number of answers.

    `xway_by` is subtracted from the expressways in alerts (rule set `thesis`), so that those of
    copies equal those of their originals.
    """
    begin, sums = minute_of(state.sums, time, KINDS * DIGEST_WIDTH)
    count = np.zeros(KINDS, np.int64)
    for i in range(len(kind)):
        k = kind[i]
        plain = amount[i] - xway_by if k == ALERT else amount[i]
        add(sums, begin + k * DIGEST_WIDTH, k, time, who[i], value[i], plain)
        count[k] += 1
        state.unanswerable[0] += k == TRAVEL_TIME and value[i] == -1
    out.emit_at(0, time, last, count)


@xs.kernel(state={"sums": np.zeros(DIGEST_WIDTH, np.int64)}, out=COUNTS)
def digest_balances(time, last, kind, who, value, amount, asker, parts, state, out):
    """Keeps digests of the answers of accounts by minute, kind and the part that each is for."""
    begin, sums = minute_of(state.sums, time, parts * KINDS * DIGEST_WIDTH)
    count = np.zeros(KINDS, np.int64)
    for i in range(len(who)):
        k = kind[i]
        at = begin + (asker[i] * KINDS + k) * DIGEST_WIDTH
        told = 0 if k == BALANCE else value[i]  # not the time of the balance, which is the answer's
        add(sums, at, k, time, who[i], told, amount[i])
        count[k] += 1
    out.emit_at(0, time, last, count)


@xs.kernel(
    state={"came": np.zeros(1, np.int64), "total": np.zeros(KINDS, np.int64)},
    out={"time": int, "count": column("int64")},
)
def answer_counts(time, last, count, tables, state, out):
    """Emits the number of answers when all `tables` have processed the rows that were read."""
    total = state.total
    for k in range(KINDS):
        total[k] += count[k]
    state.came[0] += last
    if state.came[0] == tables:
        out.emit_at(0, time, total)
        state.came[0] = 0
        total[:] = 0
