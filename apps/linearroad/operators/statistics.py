"""Segment statistics: at the start of a minute, the LAV and the vehicles of every segment."""

from __future__ import annotations

import math

import numba
import numpy as np

import xstream as xs
from linearroad.schema import FRESH, NO_MINUTE, SEGMENT, column

__all__ = ["statistics"]

MINUTES = 5  # that a LAV covers
#: Rounding down must not turn a mean that is an integer into the integer below
#: (docs/linear-road-rules.md, section 2.1, R11).
ROUNDING = 1e-9


@numba.njit
def widened(table, rows, size, new):
    """A table of `rows` rows with `new` columns instead of `size`; new entries are zero."""
    old = table.copy()
    table = xs.grow(table, rows * new)
    table[:] = 0
    for row in range(rows):
        table[row * new : row * new + size] = old[row * size : (row + 1) * size]
    return table


@numba.njit
def close_minutes(total, weight_now, history, weight, size, running, minute):
    """Move the current minute into the history, and clear minutes without reports.

    After a gap of more than five minutes, the current minute itself is no longer in the history.
    """
    for passed in range(running, min(minute, running + MINUTES + 1)):
        row = passed % MINUTES
        for key in range(size):
            history[row * size + key] = total[key]
            weight[row * size + key] = weight_now[key]
            total[key] = 0.0
            weight_now[key] = 0


@numba.njit
def latest_average(history, weight, size, key, by_report, none, half):
    """LAV as an integer: the mean of the minutes' means, or one mean over all reports."""
    total, amount = 0.0, 0
    for row in range(MINUTES):
        here = weight[row * size + key]
        if here > 0:
            total += history[row * size + key] if by_report else history[row * size + key] / here
            amount += here if by_report else 1
    if amount == 0:
        return none
    return math.floor(total / amount + half + ROUNDING)


@xs.kernel(
    state={
        "minute": np.array([NO_MINUTE], np.int64),
        "total": np.zeros(200, np.float64),
        "amount": np.zeros(200, np.int32),
        "vehicles": np.zeros(200, np.int32),
        "history": np.zeros(MINUTES * 200, np.float64),
        "weight": np.zeros(MINUTES * 200, np.int32),
    },
    out={"segment": column(SEGMENT)},
)
def statistics(time, key, actions, gain, by_report, none, half, state, out):
    """Averages and vehicles of each segment and minute; emits them when a minute begins.

    The table comes with the first second of a minute and is valid for all of it; in other seconds
    it is empty. Rule sets differ in `by_report` (one mean over all reports), `none` (the LAV of a
    segment without reports) and `half` (added before rounding down).
    """
    total, amount, vehicles = state.total, state.amount, state.vehicles
    history, weight = state.history, state.weight
    size, needed = len(total), 0
    for i in range(len(key)):
        needed = max(needed, np.int64(key[i]) + 1)
    if needed > size:
        new = max(needed, size + size // 4)
        total, amount = xs.grow(total, new), xs.grow(amount, new)
        vehicles = xs.grow(vehicles, new)
        history = widened(history, MINUTES, size, new)
        weight = widened(weight, MINUTES, size, new)
        size = new
    minute, running = time // 60, state.minute[0]
    if minute != running:
        table = np.empty(size, SEGMENT)
        counted = minute == running + 1
        close_minutes(total, amount, history, weight, size, running, minute)
        for k in range(size):
            table[k].lav = latest_average(history, weight, size, k, by_report, none, half)
            table[k].cars = vehicles[k] if counted else 0
        vehicles[:] = 0
        state.minute[0] = minute
        out.emit_at(0, table)
    else:
        out.emit_at(0, np.empty(0, SEGMENT))
    for i in range(len(key)):
        k, fresh = key[i], 1 if actions[i] & FRESH else 0
        total[k] += gain[i]
        vehicles[k] += fresh
        amount[k] += 1 if by_report else fresh
