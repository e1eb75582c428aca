"""Window statistics, computed in float64."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numba.extending import register_jitable

from xstream.kernels.kernel import kernel
from xstream.kernels.pieces import PART, first_part, is_one_part

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


@njit(fastmath=_ANY_ORDER, error_model="numpy")
def shifted_sums_and_squares(window, shift):
    """The sums of (x - shift), of its square, and of the square of x, in one pass."""
    total = 0.0
    squares = 0.0
    energy = 0.0
    for i in range(len(window)):
        x = np.float64(window[i])
        energy += x * x
        x -= shift
        total += x
        squares += x * x
    return total, squares, energy


# A window is summed in parts of PART samples, whatever its pieces are. The order of additions, and
# with it the result, does not depend on them. The usual window is one part in one piece, which is
# read where it is: other parts may be copies, whose references are counted.


@register_jitable(error_model="numpy")
def mean_of(window):
    """The mean; NaN without samples."""
    n = len(window)
    if is_one_part(window):
        return sum_of(first_part(window)) / n if n else math.nan
    total = sum_of(window.part(0, PART))
    for first in range(PART, n, PART):
        total += sum_of(window.part(first, PART))
    return total / n if n else math.nan


@register_jitable(error_model="numpy")
def variance_of(n, total, squares):
    """The variance (of the population) from sums around any sample x0 of the window.

    One pass is safe then: the variance is at least (mean - x0)**2 / n, so that the subtraction
    loses no more than a factor n.
    """
    variance = (squares - total * (total / n)) / n
    return variance if not variance < 0.0 else 0.0  # NaN remains NaN


@register_jitable(error_model="numpy")
def std_of(window):
    """The standard deviation; NaN without samples."""
    n = len(window)
    if not n:
        return math.nan
    if is_one_part(window):
        whole = first_part(window)
        total, squares = shifted_sums(whole, np.float64(whole[0]))
        return math.sqrt(variance_of(n, total, squares))
    part = window.part(0, PART)
    shift = np.float64(part[0])
    total, squares = shifted_sums(part, shift)
    for first in range(PART, n, PART):
        more, more_squares = shifted_sums(window.part(first, PART), shift)
        total += more
        squares += more_squares
    return math.sqrt(variance_of(n, total, squares))


@kernel(out=float, pieces=True)
def mean(window):
    """The mean of a window."""
    return mean_of(window)


@kernel(out=float, pieces=True)
def std(window):
    """The standard deviation of a window."""
    return std_of(window)


@kernel(out=float, pieces=True)
def energy(window):
    """The sum of the squares of a window."""
    total = sum_of_squares(window.part(0, PART))
    for first in range(PART, len(window), PART):
        total += sum_of_squares(window.part(first, PART))
    return total


@kernel(out={"start": int, "mean": float, "std": float, "energy": float}, pieces=True)
def stats(window, out):
    """The start, mean, standard deviation and energy of a window, in one pass."""
    n = len(window)
    if not n:
        out.emit(out.start, math.nan, math.nan, 0.0)
        return
    part = window.part(0, PART)
    shift = np.float64(part[0])
    total, squares, energy = shifted_sums_and_squares(part, shift)
    for first in range(PART, n, PART):
        more = shifted_sums_and_squares(window.part(first, PART), shift)
        total += more[0]
        squares += more[1]
        energy += more[2]
    deviation = math.sqrt(variance_of(n, total, squares))
    out.emit(out.start, shift + total / n, deviation, energy)


@kernel(pieces=True)
def std_above(window, alpha):
    """Is the standard deviation above alpha?"""
    return std_of(window) > alpha


@kernel(pieces=True)
def mean_below(window, beta):
    """Is the mean below beta?"""
    return mean_of(window) < beta


@kernel(out={"keep": bool, "start": int, "stop": int}, pieces=True)
def silence(window, gamma, out):
    """The range of a window, kept if its standard deviation is above gamma."""
    if len(window):
        out.emit(std_of(window) > gamma, out.start, out.start + len(window))


for statistic in (mean, std, energy, stats, silence):
    statistic.in_parts = True
