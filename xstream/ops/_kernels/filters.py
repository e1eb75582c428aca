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


#: Outputs per block, which stay in the L1 cache.
BLOCK = 512


@njit
def filter_all(recent, reversed_taps, out):
    """out[i] = the taps over recent[i : i + taps].

    It works block by block, four taps at a time over all outputs of a block, which vectorises.
    """
    taps = len(reversed_taps)
    for first in range(0, len(out), BLOCK):
        block = out[first : first + BLOCK]
        block[:] = 0.0
        k = 0
        while k + 4 <= taps:
            a, b, c, d = (reversed_taps[k], reversed_taps[k + 1], reversed_taps[k + 2],
                          reversed_taps[k + 3])  # fmt: skip
            x = recent[first + k : first + k + len(block) + 3]
            for i in range(len(block)):
                block[i] += (a * x[i] + b * x[i + 1]) + (c * x[i + 2] + d * x[i + 3])
            k += 4
        for rest in range(k, taps):
            tap = reversed_taps[rest]
            x = recent[first + rest : first + rest + len(block)]
            for i in range(len(block)):
                block[i] += tap * x[i]


def fir(window, reversed_taps, factor, like, state, out):
    """Filtered samples, those whose index is a multiple of `factor`; `like` gives their type.

    state.history holds the last len(taps) - 1 samples: zeros before the stream began.
    """
    if not len(window):
        return
    history, at = state.history, state.at
    if at[1] and out.start != at[0]:
        raise ValueError("there is a gap or an overlap before this segment")
    taps = len(reversed_taps)
    recent = np.empty(taps - 1 + len(window), np.float64)
    for i in range(taps - 1):
        recent[i] = history[i]
    end = taps - 1
    for piece in window.pieces():
        for i in range(len(piece)):
            recent[end + i] = piece[i]
        end += len(piece)
    first = -(-out.start // factor)  # rounded up, also below zero
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
