"""Decode and check: raw rows in, whole seconds of good rows out, everything else to the rejects."""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.queries.layout import (
    DAY,
    DIR,
    DOW,
    LANE,
    OUT_OF_ORDER,
    POS,
    QID,
    REQUEST_WIDTH,
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

#: The second that is being gathered: its time, and how many rows of each kind.
_CLOCK, _REPORTS, _REQUESTS, _REJECTS = range(4)


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


@numba.njit(cache=True, nogil=True)
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


@numba.njit
def pack(lane, direction, seg):
    """Three small fields in one."""
    packed = np.empty(len(lane), np.int32)
    for i in range(len(lane)):
        packed[i] = lane[i] + 8 * direction[i] + 16 * seg[i]
    return packed


@numba.njit
def run_of_reports(closer, time, begin):
    """Where the good reports of one second that begin at a row end."""
    end = begin + 1
    while end < len(time) and closer[end] == 0 and time[end] == time[begin]:
        end += 1
    return end


@numba.njit
def put_request(requests, row, fields):
    """A request as a row of REQUEST_WIDTH numbers; the requests as they are now."""
    at = row * REQUEST_WIDTH
    requests = room(requests, at + REQUEST_WIDTH)
    for k in range(REQUEST_WIDTH):
        requests[at + k] = fields[k]
    return requests


@xs.kernel(
    state={
        "gathered": np.zeros(4, np.int64),
        "vid": np.zeros(1024, np.int32),
        "spd": np.zeros(1024, np.int32),
        "xway": np.zeros(1024, np.int32),
        "lane_dir_seg": np.zeros(1024, np.int32),
        "pos": np.zeros(1024, np.int32),
        "origin": np.zeros(1024, np.int64),
        "request": np.zeros(64 * REQUEST_WIDTH, np.int32),
        "reject": np.zeros(64, np.int64),
    },
    out={
        "time": int,
        "vid": column("int32"),
        "spd": column("int32"),
        "xway": column("int32"),
        "lane_dir_seg": column("int32"),
        "pos": column("int32"),
        "origin": column("int64"),
        "request": column("int32"),
        "reject": column("int64"),
        "last": bool,
    },
)
def check(rows, origin, whole, state, out):
    """Gathers the good rows of each second and emits them when the next second begins.

    `whole` says that the last second of these rows is complete. `lane_dir_seg` packs three small
    fields, `lane + 8 * dir + 16 * seg`; `request` has REQUEST_WIDTH numbers a row, `reject` two:
    where the row comes from, and why. `last`: no other second will come of these rows.

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
    packed = pack(lane, direction, seg)
    vids, spds, xways = state.vid, state.spd, state.xway
    packeds, poss, origins = state.lane_dir_seg, state.pos, state.origin
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
            rejects = room(rejects, 2 * b + 2)
            rejects[2 * b] = origin[i]
            rejects[2 * b + 1] = why
            b += 1
            i += 1
            continue
        another = not done and time[i] == clock and kind[i] == 0 and end > begin
        if another or (n > 0 and end > begin) or (done and not whole):
            upto = n + end - begin
            vids, spds, xways = room(vids, upto), room(spds, upto), room(xways, upto)
            packeds, poss, origins = room(packeds, upto), room(poss, upto), room(origins, upto)
            vids[n:upto], spds[n:upto] = vid[begin:end], spd[begin:end]
            xways[n:upto], packeds[n:upto] = xway[begin:end], packed[begin:end]
            poss[n:upto], origins[n:upto] = pos[begin:end], origin[begin:end]
            n, begin, end = upto, 0, 0
        over = (done and whole) or (not done and time[i] > clock)
        if over and n + r + b + end - begin > 0:
            last = done or time[i] == time[-1]
            asked, refused = requests[: r * REQUEST_WIDTH], rejects[: 2 * b]
            if n > 0:
                out.emit_at(
                    0, clock, vids[:n], spds[:n], xways[:n], packeds[:n], poss[:n], origins[:n],
                    asked, refused, last,
                )  # fmt: skip
            else:
                out.emit_at(
                    0, clock, vid[begin:end], spd[begin:end], xway[begin:end], packed[begin:end],
                    pos[begin:end], origin[begin:end], asked, refused, last,
                )  # fmt: skip
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
    gathered[_CLOCK], gathered[_REPORTS], gathered[_REQUESTS], gathered[_REJECTS] = clock, n, r, b
