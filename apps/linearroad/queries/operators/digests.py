"""Digests: what was answered, in any order, as a few numbers that copies can be compared by.

An answer is weighed by a hash of everything but who it is for, and the digest of a kind of answers
is the sums of weight, weight * who and weight * who^2, modulo 2^64. Copies of traffic have shifted
VIDs and QIDs, and these sums say what they would be without the shift (`unshifted`), so the engine
need not know whose copy it works on.
"""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs

__all__ = ["DIGEST_WIDTH", "KINDS", "digest_answers", "digest_balances", "unshifted"]

KINDS = 5
COUNT, WEIGHT, FIRST, SECOND = range(4)
DIGEST_WIDTH = 4  # numbers a kind of answers


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
    k = at + kind * DIGEST_WIDTH
    sums[k + COUNT] += 1
    sums[k + WEIGHT] += w
    sums[k + FIRST] += w * whom
    sums[k + SECOND] += w * whom * whom


@xs.kernel(
    state=np.zeros(KINDS * DIGEST_WIDTH, np.int64),
    out=xs.Out(np.dtype("int64"), start="given"),
    at_end=True,
)
def digest_answers(
    time, toll_vid, toll_lav, toll, alert_vid, alert_seg, spent_qid, spent, travel_qid,
    travel_seconds, travel_toll, state, out,
):  # fmt: skip
    """The digest of all answers but balances, when the stream has ended."""
    for i in range(len(toll)):
        add(state, 0, 0, time, toll_vid[i], toll_lav[i], toll[i])
    for i in range(len(alert_vid)):
        add(state, 0, 1, time, alert_vid[i], alert_seg[i], 0)
    for i in range(len(spent)):
        add(state, 0, 3, time, spent_qid[i], 0, spent[i])
    for i in range(len(travel_qid)):
        add(state, 0, 4, time, travel_qid[i], travel_seconds[i], travel_toll[i])
    if out.ended:
        out.emit_at(0, state)


@xs.kernel(
    state=np.zeros(KINDS * DIGEST_WIDTH, np.int64),
    out=xs.Out(np.dtype("int64"), start="given"),
    at_end=True,
)
def digest_balances(time, part, qid, balance, parts, state, out):
    """The digests of balances by the part of the query that asked, when the stream has ended."""
    sums, width = state, KINDS * DIGEST_WIDTH
    if len(sums) < parts * width:
        sums = xs.grow(sums, parts * width)
    for i in range(len(qid)):
        add(sums, part[i] * width, 2, time[i], qid[i], 0, balance[i])
    if out.ended:
        out.emit_at(0, sums)


def unshifted(sums: np.ndarray, vid_by: int, qid_by: int) -> list[list[int]]:
    """The digests that an original would have, for each kind: count, and three sums."""
    mask = 2**64 - 1
    found = []
    for kind in range(KINDS):
        count, w, first, second = (
            int(number) & mask for number in sums[kind * DIGEST_WIDTH :][:DIGEST_WIDTH]
        )
        by = vid_by if kind < 2 else qid_by
        plain = (first - by * w) & mask
        squares = (second - 2 * by * plain - by * by * w) & mask
        found.append([count, w, plain, squares])
    return found
