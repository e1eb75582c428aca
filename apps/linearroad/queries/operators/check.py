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

__all__ = ["check"]

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


@numba.njit
def room(array, needed):
    """A state array with room for `needed` items."""
    if needed > len(array):
        return xs.grow(array, max(needed, 2 * len(array)))
    return array


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
    },
)
def check(
    kind, time, vid, spd, xway, lane, direction, seg, pos, qid, sinit, send, dow, tod, day, origin,
    whole, state, out,
):  # fmt: skip
    """Gathers the good rows of each second and emits them when the next second begins.

    `whole` says that the last second of these rows is complete. `lane_dir_seg` packs three small
    fields, `lane + 8 * dir + 16 * seg`; `request` has REQUEST_WIDTH numbers a row, `reject` two:
    where the row comes from, and why.
    """
    gathered = state.gathered
    clock, n, r, b = gathered[_CLOCK], gathered[_REPORTS], gathered[_REQUESTS], gathered[_REJECTS]
    vids, spds, xways = state.vid, state.spd, state.xway
    packed, poss, origins = state.lane_dir_seg, state.pos, state.origin
    requests, rejects = state.request, state.reject
    for i in range(len(kind)):
        why = fault(
            kind[i], time[i], vid[i], xway[i], lane[i], direction[i], seg[i], pos[i], qid[i],
            sinit[i], send[i], dow[i], tod[i], day[i],
        )  # fmt: skip
        if why == 0 and time[i] < clock:
            why = OUT_OF_ORDER
        if why != 0:
            rejects = room(rejects, 2 * b + 2)
            rejects[2 * b] = origin[i]
            rejects[2 * b + 1] = why
            b += 1
            continue
        if time[i] > clock:
            if n + r + b > 0:
                out.emit_at(
                    0, clock, vids[:n], spds[:n], xways[:n], packed[:n], poss[:n], origins[:n],
                    requests[: r * REQUEST_WIDTH], rejects[: 2 * b],
                )  # fmt: skip
            clock = np.int64(time[i])
            n = r = b = 0
        if kind[i] == 0:
            if n == len(vids):
                vids, spds, xways = (
                    xs.grow(vids, 2 * n),
                    xs.grow(spds, 2 * n),
                    xs.grow(xways, 2 * n),
                )
                packed, poss = xs.grow(packed, 2 * n), xs.grow(poss, 2 * n)
                origins = xs.grow(origins, 2 * n)
            vids[n] = vid[i]
            spds[n] = spd[i]
            xways[n] = xway[i]
            packed[n] = lane[i] + 8 * direction[i] + 16 * seg[i]
            poss[n] = pos[i]
            origins[n] = origin[i]
            n += 1
        else:
            at = r * REQUEST_WIDTH
            requests = room(requests, at + REQUEST_WIDTH)
            requests[at] = kind[i]
            requests[at + 1] = vid[i]
            requests[at + 2] = xway[i]
            requests[at + 3] = qid[i]
            requests[at + 4] = sinit[i]
            requests[at + 5] = send[i]
            requests[at + 6] = dow[i]
            requests[at + 7] = tod[i]
            requests[at + 8] = day[i]
            r += 1
    if whole and n + r + b > 0:  # the clock stands where it is
        out.emit_at(
            0, clock, vids[:n], spds[:n], xways[:n], packed[:n], poss[:n], origins[:n],
            requests[: r * REQUEST_WIDTH], rejects[: 2 * b],
        )  # fmt: skip
        n = r = b = 0
    gathered[_CLOCK], gathered[_REPORTS], gathered[_REQUESTS], gathered[_REJECTS] = clock, n, r, b
