"""Decode and check: raw rows in, complete seconds of good rows out; all others are rejected."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.schema import (
    ASKS_BALANCE,
    ASKS_EXPENDITURE,
    ASKS_TRAVEL_TIME,
    DAY,
    DIR,
    DOW,
    FIELDS,
    LANE,
    OUT_OF_ORDER,
    OUTSIDE_MEND,
    OUTSIDE_MILE,
    OUTSIDE_MINIT,
    OUTSIDE_OFFSET,
    PAPER_ROWS,
    POS,
    QID,
    REJECT,
    REPORTS,
    REQUEST,
    SEG,
    SEND,
    SINIT,
    SPD,
    THESIS_ROWS,
    TIME,
    TOD,
    TRANSLATED_ROWS,
    TYPE,
    UNKNOWN_TYPE,
    VID,
    XWAY,
    column,
)  # fmt: skip

__all__ = ["check", "room", "stream_times"]

#: Indices of `gathered`: the second that is being gathered, its rows of each kind, and the last
#: second that was emitted.
_CLOCK, _REPORTS, _REQUESTS, _REJECTS, _EMITTED = range(5)

_INT32 = np.iinfo(np.int32)
#: The last direction and segment, and by the form of the rows the last lane and position.
_DIRS, _SEGS = 1, 99
_LANES, _POSITIONS = np.array([4, 7, 7]), np.array([527_999, 1759, 1759])
_ANY = (5, FIELDS)  # by type and field


def _paper_domains() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The lowest and highest value of each field, by row type; unused fields accept any value."""
    low, high = (np.full(_ANY, end, np.int64) for end in (_INT32.min, _INT32.max))
    low[:, [TIME, VID, XWAY]] = 0
    low[ASKS_BALANCE, XWAY] = _INT32.min
    low[REPORTS, [LANE, DIR, SEG, POS]] = 0
    high[REPORTS, [LANE, DIR, SEG, POS]] = _LANES[PAPER_ROWS], _DIRS, _SEGS, _POSITIONS[PAPER_ROWS]
    low[[ASKS_BALANCE, ASKS_EXPENDITURE, ASKS_TRAVEL_TIME], QID] = 0
    low[ASKS_TRAVEL_TIME, [SINIT, SEND, DOW, TOD]] = 0, 0, 1, 1
    high[ASKS_TRAVEL_TIME, [SINIT, SEND, DOW, TOD]] = _SEGS, _SEGS, 7, 1440
    low[ASKS_EXPENDITURE, DAY], high[ASKS_EXPENDITURE, DAY] = 1, 69
    return low, high


def _thesis_domains() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same for rows of the thesis; Dir also depends on the lane."""
    low, high = _paper_domains()
    high[REPORTS, [LANE, POS]] = _LANES[THESIS_ROWS], _POSITIONS[THESIS_ROWS]
    low[ASKS_TRAVEL_TIME, [DOW, TOD]] = 0, 0
    high[ASKS_TRAVEL_TIME, [DOW, TOD]] = 6, 1439
    low[ASKS_EXPENDITURE, DAY], high[ASKS_EXPENDITURE, DAY] = _INT32.min, _INT32.max
    return low, high


_DOMAINS = (_paper_domains(), _thesis_domains(), _thesis_domains())
_LOW, _HIGH = (np.stack([domain[end] for domain in _DOMAINS]) for end in (0, 1))
#: Fields in the order in which a row has them, and the reasons to reject it, by the form of rows.
_PAPER_ORDER = (TIME, VID, XWAY, LANE, DIR, SEG, POS, QID, SINIT, SEND, DOW, TOD, DAY)
_THESIS_ORDER = (TIME, VID, QID, XWAY, SEG, POS, LANE, DIR, SINIT, SEND, DOW, TOD, DAY)
_ORDER = np.array([_PAPER_ORDER, _THESIS_ORDER, _THESIS_ORDER])
_REASON = np.tile(UNKNOWN_TYPE + np.arange(FIELDS) - (np.arange(FIELDS) > SPD), (3, 1))
_REASON[THESIS_ROWS:, [SEG, POS, SINIT, SEND]] = (
    OUTSIDE_MILE, OUTSIDE_OFFSET, OUTSIDE_MINIT, OUTSIDE_MEND,
)  # fmt: skip


@numba.njit
def fault(row, form):
    """The reason to reject a row of fifteen fields, as a number; 0 for a good row."""
    kind = row[TYPE]
    if form == TRANSLATED_ROWS and kind < 0:
        return np.int64(-kind)
    if kind < 0 or kind >= _LOW.shape[1] or kind == 1:
        return np.int64(UNKNOWN_TYPE)
    for i in range(_ORDER.shape[1]):
        field = _ORDER[form, i]
        outside = row[field] < _LOW[form, kind, field] or row[field] > _HIGH[form, kind, field]
        if form != PAPER_ROWS and kind == REPORTS and field == DIR:
            outside = row[DIR] != row[LANE] >> 2
        if outside:
            return np.int64(_REASON[form, field])
    return np.int64(0)


def stream_times(
    columns: tuple[NDArray[np.int32], ...], clock: int, form: int = PAPER_ROWS
) -> NDArray[np.int64]:
    """The second in which each row arrives; rejected rows do not advance the clock.

    Usually times ascend and the first row of every second is good; then only those are checked.
    Not compiled: a run would wait half a second for the compiler to start.
    """
    time = columns[TIME]
    if len(time) and time[0] >= clock and not (time[1:] < time[:-1]).any():
        first = np.flatnonzero(np.diff(time, prepend=time.dtype.type(clock)))
        if _good(np.stack([column[first] for column in columns]), form).all():
            return time.astype(np.int64)
    advancing = np.where(_good(np.stack(columns), form), time, clock)
    return np.maximum(np.maximum.accumulate(advancing), clock, dtype=np.int64)


def _good(rows: NDArray[np.int32], form: int) -> NDArray[np.bool_]:
    """Whether each row, a column of `rows`, has no `fault`."""
    kind = rows[TYPE]
    known = (kind >= 0) & (kind < _LOW.shape[1]) & (kind != 1)
    kind = np.where(known, kind, REPORTS)
    inside = (rows >= _LOW[form, kind].T) & (rows <= _HIGH[form, kind].T)
    if form != PAPER_ROWS:
        inside[DIR] |= kind == REPORTS
        inside[DIR] &= (kind != REPORTS) | (rows[DIR] == rows[LANE] >> 2)
    return known & inside.all(axis=0)


@numba.njit
def room(array, needed):
    """A state array with room for `needed` items. It may have moved."""
    if needed > len(array):
        return xs.grow(array, max(needed, 2 * len(array)))
    return array


@numba.njit
def columns_of(rows, n):
    """The fifteen columns of `n` rows, which are stored one after another."""
    return (
        rows[:n], rows[n : 2 * n], rows[2 * n : 3 * n], rows[3 * n : 4 * n], rows[4 * n : 5 * n],
        rows[5 * n : 6 * n], rows[6 * n : 7 * n], rows[7 * n : 8 * n], rows[8 * n : 9 * n],
        rows[9 * n : 10 * n], rows[10 * n : 11 * n], rows[11 * n : 12 * n],
        rows[12 * n : 13 * n], rows[13 * n : 14 * n], rows[14 * n :],
    )  # fmt: skip


@numba.njit
def unusual(kind, time, vid, xway, lane, direction, seg, pos, form):
    """1 for every row that is not a valid report. Without branches, so that SIMD is used."""
    found = np.empty(len(kind), np.uint8)
    lanes, positions, by_lane = _LANES[form], _POSITIONS[form], form != PAPER_ROWS
    for i in range(len(kind)):
        odd = (kind[i] != REPORTS) | (time[i] < 0) | (vid[i] < 0) | (xway[i] < 0)
        odd |= (lane[i] < 0) | (lane[i] > lanes) | (direction[i] < 0) | (direction[i] > _DIRS)
        odd |= (seg[i] < 0) | (seg[i] > _SEGS) | (pos[i] < 0) | (pos[i] > positions)
        odd |= by_lane & (direction[i] != lane[i] >> 2)
        found[i] = odd
    return found


#: A report's `where` packs its position, lane, direction and segment.
POS_BITS, LANE_BITS, DIR_BITS = 20, 3, 1
POS_MASK, LANE_MASK = (1 << POS_BITS) - 1, (1 << LANE_BITS) - 1


@numba.njit
def packed(lane, direction, seg, pos):
    """The packed location (`where`) of each report."""
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
def run_of_reports(odd, time, begin):
    """The end of the run of good reports of one second that begins at a row."""
    end = begin + 1
    while end < len(time) and odd[end] == 0 and time[end] == time[begin]:
        end += 1
    return end


@numba.njit
def with_request(requests, gathered, row):
    """The requests with one more, a row of fifteen fields. They may have moved."""
    n = gathered[_REQUESTS]
    requests = room(requests, n + 1)
    request = requests[n]
    request.type, request.vid, request.xway = row[TYPE], row[VID], row[XWAY]
    request.qid, request.sinit, request.send = row[QID], row[SINIT], row[SEND]
    request.dow, request.tod, request.day = row[DOW], row[TOD], row[DAY]
    gathered[_REQUESTS] += 1
    return requests


@numba.njit
def with_reject(rejects, gathered, origin, reason):
    """The rejects with one more. They may have moved."""
    row = gathered[_REJECTS]
    rejects = room(rejects, row + 1)
    rejects[row].origin, rejects[row].reason = origin, reason
    gathered[_REJECTS] += 1
    return rejects


class Reports(NamedTuple):
    """Position reports of one second, by column."""

    vid: Any
    spd: Any
    xway: Any
    where: Any
    origin: Any


@numba.njit
def with_reports(kept, gathered, more, begin, end):
    """The reports that are kept, with `begin` to `end` of others. They may have moved."""
    n = gathered[_REPORTS]
    upto = n + end - begin
    kept = Reports(
        room(kept.vid, upto), room(kept.spd, upto), room(kept.xway, upto),
        room(kept.where, upto), room(kept.origin, upto),
    )  # fmt: skip
    kept.vid[n:upto], kept.spd[n:upto] = more.vid[begin:end], more.spd[begin:end]
    kept.xway[n:upto], kept.where[n:upto] = more.xway[begin:end], more.where[begin:end]
    kept.origin[n:upto] = more.origin[begin:end]
    gathered[_REPORTS] = upto
    return kept


@numba.njit(inline="always")
def emit_second(out, time, reports, begin, end, requests, rejects, last):
    """Emit a second of checked rows."""
    out.emit_at(
        0, time, reports.vid[begin:end], reports.spd[begin:end], reports.xway[begin:end],
        reports.where[begin:end], reports.origin[begin:end], requests, rejects, last,
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
def check(rows, origin, upto, form, state, out):
    """Gathers the good rows of each second and emits them when the next second begins.

    `form`: what the columns mean (`schema.PAPER_ROWS` and others).

    `upto`: all rows of the stream up to this second have been passed in, and it is emitted even if
    it is empty; -1 if that is not known. `last`: these rows yield no further second.

    Runs of good reports, which are nearly all rows, are processed as a whole; other rows are
    checked one by one. A second whose reports are one run is passed on without a copy. Reports are
    copied only if there are several runs, or if more rows of the second may follow.
    """
    columns = columns_of(rows, len(origin))
    kind, time, n = columns[TYPE], columns[TIME], len(origin)
    gathered, requests, rejects = state.gathered, state.request, state.reject
    odd = unusual(
        kind, time, columns[VID], columns[XWAY], columns[LANE], columns[DIR], columns[SEG],
        columns[POS], form,
    )  # fmt: skip
    where = packed(columns[LANE], columns[DIR], columns[SEG], columns[POS])
    given = Reports(columns[VID], columns[SPD], columns[XWAY], where, origin)
    kept = Reports(state.vid, state.spd, state.xway, state.where, state.origin)
    i, begin, end = 0, 0, 0  # the second's only run of reports, as long as there is only one
    while i <= n:
        done, clock = i == n, gathered[_CLOCK]
        why = fault(rows[i::n], form) if not done and odd[i] != 0 else 0
        if not done and why == 0 and time[i] < clock:
            why = OUT_OF_ORDER
        if why != 0:
            rejects = with_reject(rejects, gathered, origin[i], why)
            i += 1
            continue
        whole = done and upto >= clock
        another = not done and time[i] == clock and kind[i] == REPORTS and end > begin
        if another or (gathered[_REPORTS] > 0 and end > begin) or (done and not whole):
            kept = with_reports(kept, gathered, given, begin, end)
            begin = end = 0
        over = whole or (not done and time[i] > clock)
        m, r, b = gathered[_REPORTS], gathered[_REQUESTS], gathered[_REJECTS]
        if over and clock > gathered[_EMITTED] and m + r + b + end - begin > 0:
            last = (done and upto == clock) or (not done and time[i] == time[-1])
            if m > 0:
                emit_second(out, clock, kept, 0, m, requests[:r], rejects[:b], last)
            else:
                emit_second(out, clock, given, begin, end, requests[:r], rejects[:b], last)
            gathered[_EMITTED] = clock
            gathered[_REPORTS:_EMITTED] = 0
            begin = end = 0
        if done:
            break
        gathered[_CLOCK] = time[i]
        if kind[i] == REPORTS:
            begin, end = i, run_of_reports(odd, time, i)
            i = end
        else:
            requests = with_request(requests, gathered, rows[i::n])
            i += 1
    if upto > gathered[_EMITTED]:
        emit_second(out, upto, given, 0, 0, requests[:0], rejects[:0], True)
        gathered[_EMITTED] = gathered[_CLOCK] = upto
