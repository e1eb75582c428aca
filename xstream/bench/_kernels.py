"""Kernels of the benchmarks: over windows, and the same work with one tuple per sample."""

import numpy as np

from xstream.bench._statistics import deviation, mean
from xstream.kernels._numba import grow
from xstream.kernels.kernel import kernel

#: Initial buffer for a window of samples; `grow` enlarges it for longer windows.
_HELD = 4096
_SAMPLES = {"index": int, "value": float}


@kernel
def pass_window(window):
    return True


@kernel
def pass_sample(index, value):
    return True


@kernel
def louder(window, alpha):
    return deviation(window) > alpha


@kernel
def lower(window, beta):
    return mean(window) < beta


@kernel
def gain(window, factor):
    return window * factor


@kernel(each=True)
def gain_each(x, factor):
    return x * factor


# -- one tuple per sample --------------------------------------------------------------------
# Each filter collects its own window and emits its samples one by one, as conventional engines do
# (section I of the paper).


@kernel(state={"held": np.zeros(_HELD), "count": np.zeros(1, np.int64)}, out=_SAMPLES)
def louder_samples(index, value, width, alpha, state, out):
    held = state.held
    if width > len(held):
        held = grow(state.held, width)
    n = state.count[0]
    held[n] = value
    state.count[0] = n + 1
    if n + 1 == width:
        state.count[0] = 0
        if deviation(held[:width]) > alpha:
            for i in range(width):
                out.emit(index - width + 1 + i, held[i])


@kernel(state={"held": np.zeros(_HELD), "count": np.zeros(2, np.int64)}, out=_SAMPLES)
def lower_samples(index, value, width, beta, state, out):
    held = state.held
    if width > len(held):
        held = grow(state.held, width)
    n = state.count[0]
    if n == 0:
        state.count[1] = index
    held[n] = value
    state.count[0] = n + 1
    if n + 1 == width:
        state.count[0] = 0
        if mean(held[:width]) < beta:
            for i in range(width):
                out.emit(state.count[1] + i, held[i])


# SILENCEFILTER joins the samples with the ranges of a detector. Both arrive in one stream of
# (start, stop, value): the value of a range says whether to keep it; a sample has a negative stop.
_EVENTS = {"start": int, "stop": int, "value": float}


@kernel
def sample_event(index, value):
    return index, -1, value


@kernel(state={"held": np.zeros(_HELD), "count": np.zeros(1, np.int64)}, out=_EVENTS)
def voice_ranges(index, value, width, gamma, state, out):
    held = state.held
    if width > len(held):
        held = grow(state.held, width)
    n = state.count[0]
    held[n] = value
    state.count[0] = n + 1
    if n + 1 == width:
        state.count[0] = 0
        keep = 1.0 if deviation(held[:width]) > gamma else 0.0
        out.emit(index + 1 - width, index + 1, keep)


@kernel(
    state={
        "held": np.zeros(_HELD),
        "ranges": np.zeros(_HELD),
        # index of the first buffered sample, number of buffered samples, number of waiting ranges
        "count": np.zeros(3, np.int64),
    },
    out=_SAMPLES,
)
def samples_in_ranges(start, stop, value, state, out):
    held, ranges, count = state.held, state.ranges, state.count
    if stop < 0:
        if count[1] == len(held):
            held = grow(state.held, 2 * len(held))
        if count[1] == 0:
            count[0] = start
        held[count[1]] = value
        count[1] += 1
    else:
        if 3 * count[2] + 3 > len(ranges):
            ranges = grow(state.ranges, 2 * len(ranges))
        ranges[3 * count[2]] = start
        ranges[3 * count[2] + 1] = stop
        ranges[3 * count[2] + 2] = value
        count[2] += 1
    while count[2] > 0 and count[1] > 0 and count[0] + count[1] >= ranges[1]:
        first, end = int(ranges[0]), int(ranges[1])
        if ranges[2] > 0.0:
            for i in range(max(first - count[0], 0), end - count[0]):
                out.emit(count[0] + i, held[i])
        done = end - count[0]
        for i in range(count[1] - done):
            held[i] = held[i + done]
        count[0] += done
        count[1] -= done
        count[2] -= 1
        for i in range(3 * count[2]):
            ranges[i] = ranges[i + 3]
