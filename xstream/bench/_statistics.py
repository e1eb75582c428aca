"""Window statistics with safe arithmetic, and the bare loops that the engine is compared with.

This file imports nothing of xstream: other engines load it in processes of their own, so that all
of them are given the same machine code. The arithmetic is that of `std_above` and `mean_below`
(xstream/ops/_kernels/statistics.py), which a test compares: sums in float64, taken around a sample
of the window, in any order.
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
    """Write where the windows that pass start, and return how many do."""
    passed = 0
    for at in range(0, len(samples) - width + 1, width):
        window = samples[at : at + width]
        if deviation(window) > alpha and mean(window) < beta:
            starts[passed] = at
            passed += 1
    return passed


@numba.njit(error_model="numpy")
def statfilter_repeated(samples, width, alpha, beta, starts, times):
    """The same over and over; return how many pass in all."""
    passed = 0
    for _ in range(times):
        passed += statfilter(samples, width, alpha, beta, starts)
    return passed
