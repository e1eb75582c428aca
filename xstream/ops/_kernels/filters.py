"""FIR filters across segment boundaries, with decimation."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(fastmath={"reassoc", "contract"})
def dot(a, b):
    """The sum of products; in any order, so that it uses vector registers."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit
def filter_all(recent, reversed_taps, out):
    """out[i] = the taps over recent[i : i + taps]. Tap by tap, which vectorises over outputs."""
    for i in range(len(out)):
        out[i] = 0.0
    for k in range(len(reversed_taps)):
        tap = reversed_taps[k]
        for i in range(len(out)):
            out[i] += tap * recent[k + i]


def fir(window, reversed_taps, factor, like, state, out):
    """Filtered samples, those whose index is a multiple of `factor`; `like` gives their type.

    state.history holds the last len(taps) - 1 samples: zeros before the stream began.
    """
    if not len(window):
        return
    history, at = state.history, state.at
    if at[1] and out.start != at[0]:
        raise ValueError("the segment does not go on where the last one stopped")
    taps = len(reversed_taps)
    recent = np.empty(taps - 1 + len(window), np.float64)
    for i in range(taps - 1):
        recent[i] = history[i]
    for i in range(len(window)):
        recent[taps - 1 + i] = window[i]
    first = -(-out.start // factor)  # rounded up, below zero as well
    stop = out.start + len(window)
    filtered = np.empty(max(-(-stop // factor) - first, 0), np.float64)
    if factor == 1:
        filter_all(recent, reversed_taps, filtered)
    else:
        for i in range(len(filtered)):
            begin = (first + i) * factor - out.start
            filtered[i] = dot(recent[begin : begin + taps], reversed_taps)
    for i in range(taps - 1):
        history[i] = recent[len(window) + i]
    at[0] = stop
    at[1] = 1
    if len(filtered):
        out.emit_at(first, filtered.astype(like.dtype))
