"""The content of time windows over columns of records, as compiled operators of xstream.

A tuple is a batch of records in order of time. Each kernel holds the rows of the active window and
reports by one of three policies: when a window closes (CLOSE), or whenever its content changes,
with the bindings that are new (NEW) or with those of the whole content (WHOLE). A report is a time
and one column for each variable.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from xstream.kernels.hashtable import EMPTY, entry_of, with_room

__all__ = ["CLOSE", "NEW", "WHOLE", "averaged", "paired", "selected"]

CLOSE, NEW, WHOLE = range(3)
#: Indices of `clock`: the end of the active window (0: not known yet), the rows that are held, from
#: FIRST to COUNT, the time of the last item, the number of bindings that are held (pairs) or were
#: reported last (averages), how many rows were dropped from the front, and how many sensors are
#: known.
_END, _FIRST, _COUNT, _LAST, _FOUND, _BASE, _USED = range(7)
_CLOCK = np.array([0, 0, 0, -1, 0, 0, 0], np.int64)
#: A time after all others, at which the windows that are left at the end of a stream are closed.
_NEVER = 2**62
_STATION = np.dtype([("key", "i8"), ("latest", "i8")])
#: Rows are moved to the front once this many have left.
_MOVED = 4096


def _column(kind: str) -> Any:
    return xs.Out(kind, start="given")


def _state(**more: Any) -> dict[str, Any]:
    """The state of a kernel: the rows that it holds, and more."""
    return {
        "clock": _CLOCK, "time": np.zeros(1024, np.int64), "sensor": np.zeros(1024, np.int64),
        "obs": np.zeros(1024, np.int64), "value": np.zeros(1024), **more,
    }  # fmt: skip


class Rows(NamedTuple):
    """Rows by column; those of a batch, or those that a kernel holds."""

    time: Any
    sensor: Any
    obs: Any
    value: Any


class Pairs(NamedTuple):
    """Bindings of two observations of a sensor, and the time of the earlier one."""

    first: Any
    sensor: Any
    ob1: Any
    value1: Any
    obs: Any


@numba.njit
def room(array, needed):
    """A state array with room for `needed` items. It may have moved."""
    return xs.grow(array, max(needed, 2 * len(array))) if needed > len(array) else array


@numba.njit
def begun(clock, slide):
    """The clock, with the first window as the active one when a stream begins."""
    if clock[_END] == 0:
        clock[_END] = slide
    return clock


@numba.njit
def next_time(clock, time, place, ended, size, slide, policy):
    """The time of the next row; _NEVER if windows are left to close; -1 if there is no more."""
    if place < len(time):
        return time[place]
    last_end = (clock[_LAST] + size) // slide * slide
    if policy != CLOSE:
        last_end -= slide  # the last window that has items does not change any more
    if ended and clock[_LAST] >= 0 and clock[_END] <= last_end:
        return np.int64(_NEVER)
    return np.int64(-1)


@numba.njit
def moved_on(clock, rows, size, slide):
    """Make the next window the active one; return whether rows have left."""
    clock[_END] += slide
    first, start = clock[_FIRST], clock[_END] - size
    while first < clock[_COUNT] and rows.time[first] < start:
        first += 1
    left = first > clock[_FIRST]
    clock[_FIRST] = first
    if first > _MOVED and 2 * first > clock[_COUNT]:
        for i in range(first, clock[_COUNT]):
            to = i - first
            rows.time[to], rows.sensor[to] = rows.time[i], rows.sensor[i]
            rows.obs[to], rows.value[to] = rows.obs[i], rows.value[i]
        clock[_FIRST] = 0
        clock[_COUNT] -= first
        clock[_BASE] += first
    return left


@numba.njit
def with_run(clock, rows, batch, begin, level, every, size):
    """The rows with those of a batch that have one time: `every` one or the ones above a level."""
    at, count = batch.time[begin], clock[_COUNT]
    end = begin + 1
    while end < len(batch.time) and batch.time[end] == at:
        end += 1
    upto = count + end - begin
    rows = Rows(
        room(rows.time, upto), room(rows.sensor, upto), room(rows.obs, upto), room(rows.value, upto)
    )
    inside = at >= clock[_END] - size  # else it lies between two windows
    for i in range(begin, end if inside else begin):
        if every or batch.value[i] > level:
            rows.time[count], rows.sensor[count] = at, batch.sensor[i]
            rows.obs[count], rows.value[count] = batch.obs[i], batch.value[i]
            count += 1
    clock[_COUNT], clock[_LAST] = count, at
    return rows, end


@numba.njit
def above(value, level, first, count):
    """The places of the rows whose value is above a level."""
    places = np.empty(count - first, np.int64)
    n = 0
    for i in range(first, count):
        if value[i] > level:
            places[n] = i
            n += 1
    return places[:n]


@xs.kernel(
    state=_state(),
    out={"end": int, "sensor": _column("int64"), "obs": _column("int64")},
    at_end=True,
)
def selected(time, observation, station, value, level, size, slide, policy, state, out):
    """Sensors and observations of the values above a level."""
    batch = Rows(time, station, observation, value)
    rows, i = Rows(state.time, state.sensor, state.obs, state.value), 0
    clock = begun(state.clock, slide)
    while True:
        at = next_time(clock, time, i, out.ended, size, slide, policy)
        if at < 0:
            break
        before, end = clock[_COUNT], clock[_END]
        if at >= end:
            if policy == CLOSE:
                first = clock[_FIRST]
                out.emit_at(0, end, rows.sensor[first:before], rows.obs[first:before])
            if moved_on(clock, rows, size, slide) and policy == WHOLE and at != end:
                places = above(rows.value, level, clock[_FIRST], clock[_COUNT])
                out.emit_at(0, end, rows.sensor[places], rows.obs[places])
            continue
        rows, i = with_run(clock, rows, batch, i, level, policy == WHOLE, size)
        count = clock[_COUNT]
        if policy == WHOLE and count > before:
            places = above(rows.value, level, clock[_FIRST], count)
            out.emit_at(0, at, rows.sensor[places], rows.obs[places])
        elif policy == NEW and count > before:
            out.emit_at(0, at, rows.sensor[before:count], rows.obs[before:count])


# -- pairs -----------------------------------------------------------------------------------------


@numba.njit
def with_pair(pairs, clock, rows, high, low):
    """The pairs with one more: the place of the higher value, and that of the lower one."""
    n = clock[_FOUND]
    pairs = Pairs(
        room(pairs.first, n + 1), room(pairs.sensor, n + 1), room(pairs.ob1, n + 1),
        room(pairs.value1, n + 1), room(pairs.obs, n + 1),
    )  # fmt: skip
    pairs.first[n] = min(rows.time[high], rows.time[low])
    pairs.sensor[n], pairs.ob1[n] = rows.sensor[high], rows.obs[high]
    pairs.value1[n], pairs.obs[n] = rows.value[high], rows.obs[low]
    clock[_FOUND] = n + 1
    return pairs


@numba.njit
def joined(clock, rows, previous, table, pairs, begin, level):
    """Pair the rows from `begin` on with those of the same sensor that are held."""
    count, base, used = clock[_COUNT], clock[_BASE], clock[_USED]
    previous = room(previous, count)
    table = with_room(table, used + count - begin)
    for i in range(begin, count):
        if not rows.value[i] > level:
            continue
        entry = table[entry_of(table, rows.sensor[i])]
        if entry.key == EMPTY:
            entry.key, entry.latest = rows.sensor[i], -1
            used += 1
        other = entry.latest - base
        while other >= clock[_FIRST]:
            if rows.value[other] > rows.value[i]:
                pairs = with_pair(pairs, clock, rows, other, i)
            elif rows.value[i] > rows.value[other]:
                pairs = with_pair(pairs, clock, rows, i, other)
            other = previous[other] - base
        previous[i], entry.latest = entry.latest, i + base
    clock[_USED] = used
    return previous, table, pairs


@numba.njit
def without_left(clock, pairs, size):
    """Drop the pairs of which an item has left."""
    start, kept = clock[_END] - size, 0
    for i in range(clock[_FOUND]):
        if pairs.first[i] >= start:
            pairs.first[kept], pairs.sensor[kept] = pairs.first[i], pairs.sensor[i]
            pairs.ob1[kept], pairs.value1[kept] = pairs.ob1[i], pairs.value1[i]
            pairs.obs[kept] = pairs.obs[i]
            kept += 1
    clock[_FOUND] = kept


@numba.njit(inline="always")
def emit_pairs(out, at, pairs, n):
    """Report pairs."""
    out.emit_at(0, at, pairs.sensor[:n], pairs.ob1[:n], pairs.value1[:n], pairs.obs[:n])


@xs.kernel(
    state=_state(
        previous=np.zeros(1024, np.int64),
        table=np.full(64, np.array((EMPTY, -1), _STATION)),
        pair_first=np.zeros(1024, np.int64),
        pair_sensor=np.zeros(1024, np.int64),
        pair_ob1=np.zeros(1024, np.int64),
        pair_value1=np.zeros(1024),
        pair_obs=np.zeros(1024, np.int64),
    ),
    out={
        "end": int, "sensor": _column("int64"), "ob1": _column("int64"),
        "value1": _column("float64"), "obs": _column("int64"),
    },
    at_end=True,
)  # fmt: skip
def paired(time, observation, station, value, level, size, slide, policy, state, out):
    """Two observations of a sensor above a level, the first with the higher value."""
    batch = Rows(time, station, observation, value)
    rows, i = Rows(state.time, state.sensor, state.obs, state.value), 0
    pairs = Pairs(
        state.pair_first, state.pair_sensor, state.pair_ob1, state.pair_value1, state.pair_obs
    )
    previous, table, clock = state.previous, state.table, begun(state.clock, slide)
    while True:
        at = next_time(clock, time, i, out.ended, size, slide, policy)
        if at < 0:
            break
        before, end = clock[_COUNT], clock[_END]
        if at >= end:
            if policy == CLOSE:
                emit_pairs(out, end, pairs, clock[_FOUND])
            base = clock[_BASE]
            left = moved_on(clock, rows, size, slide)
            for place in range(clock[_FIRST], clock[_COUNT] if clock[_BASE] > base else 0):
                previous[place] = previous[place + clock[_BASE] - base]
            without_left(clock, pairs, size)
            if left and policy == WHOLE and at != end:
                emit_pairs(out, end, pairs, clock[_FOUND])
            continue
        rows, i = with_run(clock, rows, batch, i, level, policy == WHOLE, size)
        previous, table, pairs = joined(clock, rows, previous, table, pairs, before, level)
        entered = policy == WHOLE and clock[_COUNT] > before
        if entered or (policy == NEW and clock[_FOUND] > 0):
            emit_pairs(out, at, pairs, clock[_FOUND])
        if policy == NEW:
            clock[_FOUND] = 0


# -- averages --------------------------------------------------------------------------------------


@numba.njit
def averages(clock, rows, level, by_sensor):
    """The average of the values above a level: of all, 0 if there is none, or of each sensor."""
    first, count = clock[_FIRST], clock[_COUNT]
    places = above(rows.value, level, first, count)
    if not by_sensor:
        mean = rows.value[places].mean() if len(places) else 0.0
        return np.zeros(1, np.int64), np.full(1, mean)
    order = places[np.argsort(rows.sensor[places], kind="mergesort")]
    sensor, mean = np.empty(len(order), np.int64), np.empty(len(order))
    n = i = 0
    while i < len(order):
        key, total, begin = rows.sensor[order[i]], 0.0, i
        while i < len(order) and rows.sensor[order[i]] == key:
            total += rows.value[order[i]]
            i += 1
        sensor[n], mean[n] = key, total / (i - begin)
        n += 1
    return sensor[:n], mean[:n]


@numba.njit
def unreported(clock, last_sensor, last_mean, sensor, mean):
    """The averages that the last report has not; both are in the order of sensors."""
    fresh, place = np.empty(len(sensor), np.int64), 0
    n = 0
    for i in range(len(sensor)):
        while place < clock[_FOUND] and last_sensor[place] < sensor[i]:
            place += 1
        same = place < clock[_FOUND] and last_sensor[place] == sensor[i]
        if not (same and last_mean[place] == mean[i]):
            fresh[n] = i
            n += 1
    return fresh[:n]


@xs.kernel(
    state=_state(last_sensor=np.zeros(16, np.int64), last_mean=np.zeros(16)),
    out={"end": int, "sensor": _column("int64"), "avg": _column("float64")},
    at_end=True,
)
def averaged(time, observation, station, value, level, by_sensor, size, slide, policy, state, out):
    """The average of the values above a level, of all rows or of each sensor."""
    batch = Rows(time, station, observation, value)
    rows, i = Rows(state.time, state.sensor, state.obs, state.value), 0
    last_sensor, last_mean, clock = state.last_sensor, state.last_mean, begun(state.clock, slide)
    while True:
        at = next_time(clock, time, i, out.ended, size, slide, policy)
        if at < 0:
            break
        before, end, when = clock[_COUNT], clock[_END], at
        if at >= end:
            when = end
            if policy == CLOSE:
                sensor, mean = averages(clock, rows, level, by_sensor)
                out.emit_at(0, end, sensor, mean)
            left = moved_on(clock, rows, size, slide)
            if not left or policy == CLOSE or at == end:
                continue
        else:
            rows, i = with_run(clock, rows, batch, i, level, policy != CLOSE, size)
            if policy == CLOSE or clock[_COUNT] == before:
                continue
        sensor, mean = averages(clock, rows, level, by_sensor)
        if policy == WHOLE:
            out.emit_at(0, when, sensor, mean)
            continue
        fresh = unreported(clock, last_sensor, last_mean, sensor, mean)
        n = len(sensor)
        last_sensor, last_mean = room(last_sensor, n), room(last_mean, n)
        last_sensor[:n], last_mean[:n], clock[_FOUND] = sensor, mean, n
        if len(fresh) > 0:
            out.emit_at(0, when, sensor[fresh], mean[fresh])
