"""DETECTAUDIO without segments of plain samples, and its join: per sample, on timestamps."""

from fractions import Fraction

import numpy as np

import xstream as xs

#: A sample with its timestamp: three times the size of the sample.
ROW = np.dtype([("time", np.int64), ("value", np.float32)])
SPECTRUM_ROW = np.dtype([("time", np.int64), ("value", np.complex64)])
SIZE, BINS = 32, 17
CHANNELS = 4
_HELD = 1 << 16

# -- one tuple per sample ---------------------------------------------------------------------


@xs.kernel
def hann_of_samples(time, value, weights):
    return time, value * weights[time % SIZE]


@xs.kernel(
    state={"held": np.zeros(SIZE, np.float32), "count": np.zeros(1, np.int64)},
    out={"bin": int, "re": float, "im": float},
)
def fft_of_samples(time, value, state, out):
    """Collects a window, sends its bins one by one."""
    held, count = state.held, state.count
    held[count[0]] = value
    count[0] += 1
    if count[0] == SIZE:
        count[0] = 0
        spectrum = np.fft.rfft(held)
        for k in range(BINS):
            out.emit(k, spectrum[k].real, spectrum[k].imag)


@xs.kernel(state={"total": np.zeros(1)}, out=float)
def score_of_bins(k, re, im, weights, state, out):
    """Collects the bins of a window, sends its score."""
    state.total[0] += weights[k] * np.sqrt(re * re + im * im)
    if k == BINS - 1:
        out.emit(state.total[0])
        state.total[0] = 0.0


# -- windows of rows -------------------------------------------------------------------------


@xs.kernel(out=xs.Out(ROW))
def hann_rows(window, weights, out):
    for i in range(len(window)):
        out[i].time = window[i].time
        out[i].value = window[i].value * weights[i % SIZE]


@xs.kernel(out=xs.Out(SPECTRUM_ROW, rate=Fraction(BINS, SIZE)))
def fft_rows(window, out):
    """Copies the values out into a column, transforms, and copies the bins back into rows."""
    column = np.empty(len(window), np.float32)
    for i in range(len(window)):
        column[i] = window[i].value
    spectra = np.fft.rfft(column.reshape(len(window) // SIZE, SIZE))
    for w in range(len(window) // SIZE):
        for k in range(BINS):
            out[w * BINS + k].time = window[w * SIZE].time
            out[w * BINS + k].value = spectra[w, k]


@xs.kernel(out=xs.Out("float32", rate=Fraction(1, BINS)))
def score_rows(window, weights, out):
    for w in range(len(out)):
        total = np.float32(0.0)
        for k in range(BINS):
            z = window[w * BINS + k].value
            total += weights[k] * np.sqrt(z.real * z.real + z.imag * z.imag)
        out[w] = total


# -- the join --------------------------------------------------------------------------------
# Ranges and joined rows arrive merged, as (start, stop, keep, four values): a row has a stop below
# nought.


@xs.kernel(out={"time": int, "value": float})
def samples_of_rows(window, out):
    """A window unpacked: a hash join on timestamps takes them one by one."""
    for i in range(len(window)):
        out.emit(window[i].time, np.float64(window[i].value))


@xs.kernel(out={"time": int, "value": float})
def samples_of_segment(window, out):
    for i in range(len(window)):
        out.emit(out.start + i, np.float64(window[i]))


@xs.kernel
def range_event(keep, start, stop):
    return start, stop, 1.0 if keep else 0.0, 0.0, 0.0, 0.0, 0.0


@xs.kernel
def row_event(time, a, b, c, d):
    return time, -1, 0.0, a, b, c, d


@xs.kernel(
    state={
        "held": np.zeros(_HELD * CHANNELS),
        "asked": np.zeros(3 * 64),
        # the first time held, the time behind the last, how many ranges wait
        "count": np.zeros(3, np.int64),
    },
    out={"time": int, "a": float, "b": float, "c": float, "d": float},
)
def rows_in_ranges(start, stop, keep, a, b, c, d, state, out):
    """Joined rows that lie inside the ranges, in order; a range without keep discards."""
    held, asked, count = state.held, state.asked, state.count
    capacity = len(held) // CHANNELS
    if stop < 0:
        if count[1] - count[0] == capacity:
            old = held.copy()
            held = xs.grow(state.held, 2 * capacity * CHANNELS)
            for t in range(count[0], count[1]):
                for k in range(CHANNELS):
                    held[(t % (2 * capacity)) * CHANNELS + k] = old[(t % capacity) * CHANNELS + k]
            capacity *= 2
        at = (start % capacity) * CHANNELS
        held[at], held[at + 1], held[at + 2], held[at + 3] = a, b, c, d
        count[1] = start + 1
    else:
        if 3 * count[2] + 3 > len(asked):
            asked = xs.grow(state.asked, 2 * len(asked))
        first = 3 * count[2]
        asked[first], asked[first + 1], asked[first + 2] = start, stop, keep
        count[2] += 1
    served = 0
    while served < count[2] and (asked[3 * served + 2] == 0.0 or asked[3 * served + 1] <= count[1]):
        begin, end = int(asked[3 * served]), int(asked[3 * served + 1])
        if asked[3 * served + 2] > 0.0:
            for t in range(max(begin, count[0]), end):
                p = (t % capacity) * CHANNELS
                out.emit(t, held[p], held[p + 1], held[p + 2], held[p + 3])
        elif end > count[0]:
            count[0] = min(end, count[1])
            if end > count[1]:
                break  # what it discards has not come yet: it is looked at again
        served += 1
    if served:
        count[2] -= served
        for i in range(3 * count[2]):
            asked[i] = asked[i + 3 * served]
