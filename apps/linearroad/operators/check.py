"""Decode and check: raw rows in, whole seconds of good rows out, everything else to the rejects."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from linearroad.schema import (
    DAY,
    DIR,
    DOW,
    LANE,
    OUT_OF_ORDER,
    POS,
    QID,
    REJECT,
    REQUEST,
    SEG,
    SEND,
    SINIT,
    TIME,
    TOD,
    UNKNOWN_TYPE,
    VID,
    XWAY,
    column,
)  # fmt: skip

__all__ = ["check", "stream_times"]

#: The second that is being gathered: its time, and how many rows of each kind; the last second that
#: was emitted.
_CLOCK, _REPORTS, _REQUESTS, _REJECTS, _EMITTED = range(5)


@numba.njit(inline="always")
def fault(kind, time, vid, xway, lane, direction, seg, pos, qid, sinit, send, dow, tod, day):
    """The reason to reject a row, as a number; 0 for a good one. Fields in the input's order."""
    if kind != 0 and kind != 2 and kind != 3 and kind != 4:
        return UNKNOWN_TYPE
    if time < 0:
        return TIME
    if vid < 0:
        return VID
    if kind != 2 and xway < 0:
        return XWAY
    if kind == 0:
        if lane < 0 or lane > 4:
            return LANE
        if direction < 0 or direction > 1:
            return DIR
        if seg < 0 or seg > 99:
            return SEG
        if pos < 0 or pos > 527999:
            return POS
        return 0
    if qid < 0:
        return QID
    if kind == 4:
        if sinit < 0 or sinit > 99:
            return SINIT
        if send < 0 or send > 99:
            return SEND
        if dow < 1 or dow > 7:
            return DOW
        if tod < 1 or tod > 1440:
            return TOD
    if kind == 3 and (day < 1 or day > 69):
        return DAY
    return 0


@xs.compiled
def stream_times(
    kind, time, vid, spd, xway, lane, direction, seg, pos, qid, sinit, send, dow, tod, day, clock
):  # fmt: skip
    """The second of the stream that each row comes in: a row that is refused does not move it."""
    times = np.empty(len(kind), np.int64)
    for i in range(len(kind)):
        if time[i] > clock:
            why = fault(
                kind[i], time[i], vid[i], xway[i], lane[i], direction[i], seg[i], pos[i], qid[i],
                sinit[i], send[i], dow[i], tod[i], day[i],
            )  # fmt: skip
            if why == 0:
                clock = np.int64(time[i])
        times[i] = clock
    return times


@numba.njit
def room(array, needed):
    """A state array with room for `needed` items."""
    if needed > len(array):
        return xs.grow(array, max(needed, 2 * len(array)))
    return array


@numba.njit
def columns_of(rows, n):
    """The fifteen columns of `n` rows, which lie one after another."""
    return (
        rows[:n], rows[n : 2 * n], rows[2 * n : 3 * n], rows[3 * n : 4 * n], rows[4 * n : 5 * n],
        rows[5 * n : 6 * n], rows[6 * n : 7 * n], rows[7 * n : 8 * n], rows[8 * n : 9 * n],
        rows[9 * n : 10 * n], rows[10 * n : 11 * n], rows[11 * n : 12 * n],
        rows[12 * n : 13 * n], rows[13 * n : 14 * n], rows[14 * n :],
    )  # fmt: skip


@numba.njit
def look_closer(kind, time, vid, xway, lane, direction, seg, pos):
    """1 for every row that is not a report with all fields in their domains. No branches: SIMD."""
    closer = np.empty(len(kind), np.uint8)
    for i in range(len(kind)):
        odd = (kind[i] != 0) | (time[i] < 0) | (vid[i] < 0) | (xway[i] < 0)
        odd |= (lane[i] < 0) | (lane[i] > 4) | (direction[i] < 0) | (direction[i] > 1)
        odd |= (seg[i] < 0) | (seg[i] > 99) | (pos[i] < 0) | (pos[i] > 527999)
        closer[i] = odd
    return closer


#: A report's `where` packs its position, lane, direction and segment.
POS_BITS, LANE_BITS, DIR_BITS = 20, 3, 1
POS_MASK, LANE_MASK = (1 << POS_BITS) - 1, (1 << LANE_BITS) - 1


@numba.njit
def packed(lane, direction, seg, pos):
    """Where each report comes from."""
    where = np.empty(len(lane), np.int32)
    for i in range(len(lane)):
        high = (seg[i] << DIR_BITS | direction[i]) << LANE_BITS | lane[i]
        where[i] = high << POS_BITS | pos[i]
    return where


@numba.njit(inline="always")
def pos_of(where):
    """The position."""
    return where & POS_MASK


@numba.njit(inline="always")
def lane_of(where):
    """The lane."""
    return (where >> POS_BITS) & LANE_MASK


@numba.njit(inline="always")
def dir_of(where):
    """The direction."""
    return (where >> (POS_BITS + LANE_BITS)) & 1


@numba.njit(inline="always")
def seg_of(where):
    """The segment."""
    return where >> (POS_BITS + LANE_BITS + DIR_BITS)


@numba.njit
def run_of_reports(closer, time, begin):
    """Where the good reports of one second that begin at a row end."""
    end = begin + 1
    while end < len(time) and closer[end] == 0 and time[end] == time[begin]:
        end += 1
    return end


@numba.njit
def put_request(requests, row, fields):
    """A request as row `row`; the requests as they are now."""
    requests = room(requests, row + 1)
    request = requests[row]
    request.type, request.vid, request.xway = fields[0], fields[1], fields[2]
    request.qid, request.sinit, request.send = fields[3], fields[4], fields[5]
    request.dow, request.tod, request.day = fields[6], fields[7], fields[8]
    return requests


@numba.njit
def put_reject(rejects, row, origin, reason):
    """A reject as row `row`; the rejects as they are now."""
    rejects = room(rejects, row + 1)
    rejects[row].origin, rejects[row].reason = origin, reason
    return rejects


class Reports(NamedTuple):
    """Position reports of one second, by column."""

    vid: Any
    spd: Any
    xway: Any
    where: Any
    origin: Any


@numba.njit
def appended(kept, n, more, begin, end):
    """Reports `begin` to `end` of `more` behind the first `n` that are kept; all as it is now."""
    upto = n + end - begin
    kept = Reports(
        room(kept.vid, upto), room(kept.spd, upto), room(kept.xway, upto),
        room(kept.where, upto), room(kept.origin, upto),
    )  # fmt: skip
    kept.vid[n:upto], kept.spd[n:upto] = more.vid[begin:end], more.spd[begin:end]
    kept.xway[n:upto], kept.where[n:upto] = more.xway[begin:end], more.where[begin:end]
    kept.origin[n:upto] = more.origin[begin:end]
    return kept


@numba.njit(inline="always")
def emit_second(out, time, reports, begin, end, requests, rejects, last):
    """Send a second of checked rows."""
    out.emit_at(
        0, time, reports.vid[begin:end], reports.spd[begin:end], reports.xway[begin:end],
        reports.where[begin:end], reports.origin[begin:end],
        requests, rejects, last,
    )  # fmt: skip


@xs.kernel(
    state={
        "gathered": np.array([0, 0, 0, 0, -1], np.int64),
        "vid": np.zeros(1024, np.int32),
        "spd": np.zeros(1024, np.int32),
        "xway": np.zeros(1024, np.int32),
        "where": np.zeros(1024, np.int32),
        "origin": np.zeros(1024, np.int64),
        "request": np.zeros(64, REQUEST),
        "reject": np.zeros(64, REJECT),
    },
    out={
        "time": int,
        "vid": column("int32"),
        "spd": column("int32"),
        "xway": column("int32"),
        "where": column("int32"),
        "origin": column("int64"),
        "request": column(REQUEST),
        "reject": column(REJECT),
        "last": bool,
    },
)
def check(rows, origin, upto, state, out):
    """Gathers the good rows of each second and emits them when the next second begins.

    `upto`: all rows of the stream up to this second have been given, and it is emitted even if it
    has none; -1 where that is not known. `last`: no other second will come of these rows.

    Runs of good reports, which are nearly all rows, are taken whole; all others are looked at one
    by one. A second whose reports are one run goes out as it came in; only where there are several,
    or the rest is still to come, are they gathered first.
    """
    kind, time, vid, spd, xway, lane, direction, seg, pos, qid, sinit, send, dow, tod, day = (
        columns_of(rows, len(origin))
    )
    gathered = state.gathered
    clock, n, r, b = gathered[_CLOCK], gathered[_REPORTS], gathered[_REQUESTS], gathered[_REJECTS]
    requests, rejects = state.request, state.reject
    closer = look_closer(kind, time, vid, xway, lane, direction, seg, pos)
    given = Reports(vid, spd, xway, packed(lane, direction, seg, pos), origin)
    kept = Reports(state.vid, state.spd, state.xway, state.where, state.origin)
    i, begin, end = 0, 0, 0  # the second's only run of reports, while there is but one
    while i <= len(kind):
        why, done = 0, i == len(kind)
        if not done and closer[i] != 0:
            why = fault(
                kind[i], time[i], vid[i], xway[i], lane[i], direction[i], seg[i], pos[i], qid[i],
                sinit[i], send[i], dow[i], tod[i], day[i],
            )  # fmt: skip
        if not done and why == 0 and time[i] < clock:
            why = OUT_OF_ORDER
        if why != 0:
            rejects = put_reject(rejects, b, origin[i], why)
            b += 1
            i += 1
            continue
        whole = done and upto >= clock
        another = not done and time[i] == clock and kind[i] == 0 and end > begin
        if another or (n > 0 and end > begin) or (done and not whole):
            kept = appended(kept, n, given, begin, end)
            n, begin, end = n + end - begin, 0, 0
        over = whole or (not done and time[i] > clock)
        if over and clock > gathered[_EMITTED] and n + r + b + end - begin > 0:
            last = (done and upto == clock) or (not done and time[i] == time[-1])
            if n > 0:
                emit_second(out, clock, kept, 0, n, requests[:r], rejects[:b], last)
            else:
                emit_second(out, clock, given, begin, end, requests[:r], rejects[:b], last)
            gathered[_EMITTED] = clock
            n = r = b = begin = end = 0
        if done:
            break
        clock = np.int64(time[i])
        if kind[i] != 0:
            fields = (
                kind[i], vid[i], xway[i], qid[i], sinit[i], send[i], dow[i], tod[i], day[i],
            )  # fmt: skip
            requests = put_request(requests, r, fields)
            r += 1
            i += 1
            continue
        begin, end = i, run_of_reports(closer, time, i)
        i = end
    if upto > gathered[_EMITTED]:
        emit_second(out, upto, given, 0, 0, requests[:0], rejects[:0], True)
        gathered[_EMITTED] = clock = upto
    gathered[_CLOCK], gathered[_REPORTS], gathered[_REQUESTS], gathered[_REJECTS] = clock, n, r, b
