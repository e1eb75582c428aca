"""Window statistics, computed in float64."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from xstream.kernels.kernel import kernel

# Sums may be reordered, which allows vector registers; infinities and NaN keep their meaning.
_ANY_ORDER = {"reassoc", "contract"}


@njit(fastmath=_ANY_ORDER, error_model="numpy")
def sum_of(window):
    """The sum of the samples."""
    total = 0.0
    for i in range(len(window)):
        total += np.float64(window[i])
    return total


@njit(fastmath=_ANY_ORDER, error_model="numpy")
def sum_of_squares(window):
    """The sum of the squares of the samples."""
    total = 0.0
    for i in range(len(window)):
        x = np.float64(window[i])
        total += x * x
    return total


@njit(fastmath=_ANY_ORDER, error_model="numpy")
def shifted_sums(window, shift):
    """The sums of (x - shift) and of its square, in one pass."""
    total = 0.0
    squares = 0.0
    for i in range(len(window)):
        x = np.float64(window[i]) - shift
        total += x
        squares += x * x
    return total, squares


@njit(error_model="numpy")
def mean_of(window):
    """The mean; NaN without samples."""
    n = len(window)
    return sum_of(window) / n if n else math.nan


@njit(error_model="numpy")
def mean_and_variance(window):
    """Mean and variance (of the population); NaN without samples.

    One pass is safe if the sums are taken around any sample x0 of the window: the variance is at
    least (mean - x0)**2 / n, so that the subtraction below loses no more than a factor n.
    """
    n = len(window)
    if not n:
        return math.nan, math.nan
    shift = np.float64(window[0])
    total, squares = shifted_sums(window, shift)
    variance = (squares - total * (total / n)) / n
    if variance < 0.0:  # NaN remains NaN
        variance = 0.0
    return shift + total / n, variance


@kernel(out=float)
def mean(window):
    """The mean of a window."""
    return mean_of(window)


@kernel(out=float)
def std(window):
    """The standard deviation of a window."""
    return math.sqrt(mean_and_variance(window)[1])


@kernel(out=float)
def energy(window):
    """The sum of the squares of a window."""
    return sum_of_squares(window)


@kernel(out={"start": int, "mean": float, "std": float, "energy": float})
def stats(window, out):
    """The start, mean, standard deviation and energy of a window."""
    average, variance = mean_and_variance(window)
    out.emit(out.start, average, math.sqrt(variance), sum_of_squares(window))


@kernel
def std_above(window, alpha):
    """Is the standard deviation above alpha?"""
    return math.sqrt(mean_and_variance(window)[1]) > alpha


@kernel
def mean_below(window, beta):
    """Is the mean below beta?"""
    return mean_of(window) < beta


@kernel(out={"keep": bool, "start": int, "stop": int})
def silence(window, gamma, out):
    """The range of a window, kept if its standard deviation is above gamma."""
    if len(window):
        keep = math.sqrt(mean_and_variance(window)[1]) > gamma
        out.emit(keep, out.start, out.start + len(window))
