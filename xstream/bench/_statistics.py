"""Window statistics with safe arithmetic, and the plain loops that the engine is compared with.

This file does not import xstream: other engines load it in their own processes, so that all of them
run the same machine code. The arithmetic is that of `std_above` and `mean_below`
(xstream/ops/_kernels/statistics.py), which a test checks: sums in float64, relative to a sample of
the window, in any order.
"""

import math

import numba
import numpy as np

_ANY_ORDER = {"reassoc", "contract"}


@numba.njit(fastmath=_ANY_ORDER, error_model="numpy")
def mean(window):
    total = 0.0
    for i in range(len(window)):
        total += np.float64(window[i])
    return total / len(window)


@numba.njit(fastmath=_ANY_ORDER, error_model="numpy")
def shifted_sums(window, shift):
    total = 0.0
    squares = 0.0
    for i in range(len(window)):
        x = np.float64(window[i]) - shift
        total += x
        squares += x * x
    return total, squares


@numba.njit(error_model="numpy")
def deviation(window):
    n = len(window)
    total, squares = shifted_sums(window, np.float64(window[0]))
    variance = (squares - total * (total / n)) / n
    if variance < 0.0:
        variance = 0.0
    return math.sqrt(variance)


@numba.njit(error_model="numpy")
def statfilter(samples, width, alpha, beta, starts):
    """Write the starts of the windows that pass, and return their number."""
    passed = 0
    for at in range(0, len(samples) - width + 1, width):
        window = samples[at : at + width]
        if deviation(window) > alpha and mean(window) < beta:
            starts[passed] = at
            passed += 1
    return passed


@numba.njit(error_model="numpy")
def statfilter_repeated(samples, width, alpha, beta, starts, times):
    """Repeat `statfilter`; return the total number of windows that pass."""
    passed = 0
    for _ in range(times):
        passed += statfilter(samples, width, alpha, beta, starts)
    return passed
