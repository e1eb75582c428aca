"""PIPELINE without segments of plain samples: tuples one by one, and windows of <time, value> rows."""

import math
from fractions import Fraction

import numba
import numpy as np

import xstream as xs

#: A sample with its timestamp, as the paper's PIPELINE has them: twice the size of the sample.
ROW = np.dtype([("time", np.int64), ("value", np.float64)])
LEVEL = 4
STEP = 2**LEVEL
_HELD = 8192
SAMPLES = {"time": int, "value": float}

# -- one tuple per sample ---------------------------------------------------------------------
# Windows end with a mark: a time below zero, -1 - n behind n samples, and a value that belongs to
# the whole window.


@xs.kernel(
    # samples so far, windows so far, and where the next sample goes
    state={"held": np.zeros(_HELD), "count": np.zeros(3, np.int64)},
    out=SAMPLES,
)
def windows_of_samples(time, value, width, step, state, out):
    """Every `step` samples the last `width`, one by one."""
    held, count = state.held, state.count
    at = count[2]
    held[at] = value
    at = at + 1 if at + 1 < width else 0
    count[0] += 1
    count[2] = at
    if count[0] == width + count[1] * step:
        first = count[1] * step
        for i in range(width):
            out.emit(first + i, held[at])
            at = at + 1 if at + 1 < width else 0
        count[1] += 1


@numba.njit
def haar_in_place(samples, width):
    scale = math.sqrt(0.5)
    for _ in range(LEVEL - 1):
        width //= 2
        for i in range(width):
            samples[i] = (samples[2 * i] + samples[2 * i + 1]) * scale
    width //= 2
    for i in range(width):
        samples[i] = (samples[2 * i] - samples[2 * i + 1]) * scale
    return width


@xs.kernel(state={"held": np.zeros(_HELD), "count": np.zeros(1, np.int64)}, out=SAMPLES)
def haar_of_samples(time, value, width, state, out):
    """Collects a window, sends its details one by one, then the mark with their mean size."""
    held, count = state.held, state.count
    held[count[0]] = value
    count[0] += 1
    if count[0] == width:
        count[0] = 0
        details = haar_in_place(held, width)
        total = 0.0
        for i in range(details):
            total += abs(held[i])
            out.emit(i, held[i])
        out.emit(-1 - details, total / details)


@xs.kernel(state={"held": np.zeros(_HELD), "count": np.zeros(1, np.int64)}, out=SAMPLES)
def trimpeak_of_samples(time, value, lowest, state, out):
    """Collects a window, sends what follows from its peak on, then the mark with the peak."""
    held, count = state.held, state.count
    if time >= 0:
        held[count[0]] = value
        count[0] += 1
        return
    at = 0
    for i in range(1, count[0]):
        if (held[i] < held[at]) if lowest else (held[i] > held[at]):
            at = i
    for i in range(at, count[0]):
        out.emit(i - at, held[i])
    out.emit(-1 - (count[0] - at), held[at])
    count[0] = 0


@xs.kernel
def is_mark(time, value):
    return time < 0


@xs.kernel(state={"windows": np.zeros(1, np.int64)}, out={"start": int, "ratio": float})
def leak_of_samples(
    count, size, rest, first, n2, second, n3, third, n4, fourth, step, guard, limit, sigmas, state,
    out,
):  # fmt: skip
    """LeakDetect over the marks of a window and its four peaks."""
    start = state.windows[0] * step // STEP
    state.windows[0] += 1
    at = (-1 - count) - (-1 - rest)
    if at * STEP < guard or (-1 - rest - 1) * STEP < guard:
        return
    front = first - second
    if front <= sigmas * 1.2533 * size:
        return
    ratio = (third - fourth) / front
    if abs(ratio) < limit:
        out.emit((start + at) * STEP, ratio)


# -- windows of rows -------------------------------------------------------------------------


@xs.kernel(out=xs.Out(ROW, rate=Fraction(1, STEP)))
def haar_strided(window, out):
    """Works on the rows as they are: every other word is a timestamp."""
    rows = window.copy()
    scale = math.sqrt(0.5)
    width = len(rows)
    for _ in range(LEVEL - 1):
        width //= 2
        for i in range(width):
            rows[i].value = (rows[2 * i].value + rows[2 * i + 1].value) * scale
    width //= 2
    for i in range(width):
        out[i].time = window[i * STEP].time
        out[i].value = (rows[2 * i].value - rows[2 * i + 1].value) * scale


@xs.kernel(out=xs.Out(ROW, rate=Fraction(1, STEP)))
def haar_columns(window, out):
    """Copies the values out into a column first, and back into rows afterwards."""
    column = np.empty(len(window), np.float64)
    for i in range(len(window)):
        column[i] = window[i].value
    width = haar_in_place(column, len(window))
    for i in range(width):
        out[i].time = window[i * STEP].time
        out[i].value = column[i]


@xs.kernel(out={"value": float, "segment": xs.Out(ROW, start="given")})
def trimpeak_rows(window, lowest, out):
    """The peak, and the rows from there on."""
    at = 0
    for i in range(1, len(window)):
        x, peak = window[i].value, window[at].value
        if (x < peak) if lowest else (x > peak):
            at = i
    out.emit_at(out.start + at, window[at].value, window[at:])


@xs.kernel(out={"start": int, "ratio": float})
def leak_rows(details, first, rest, second, third, fourth, guard, limit, sigmas, out):
    """LeakDetect over rows."""
    at = len(details) - len(rest)
    if at * STEP < guard or (len(rest) - 1) * STEP < guard:
        return
    size = 0.0
    for i in range(len(details)):
        size += abs(details[i].value)
    front = first - second
    if front <= sigmas * 1.2533 * size / len(details):
        return
    ratio = (third - fourth) / front
    if abs(ratio) < limit:
        out.emit((out.start + at) * STEP, ratio)
