"""Bare loops that multiply windows by a constant: what `elementwise` is compared with."""

import numba
import numpy as np


@numba.njit(error_model="numpy")
def scaled_into(window, factor, out):
    for i in range(len(window)):
        out[i] = window[i] * factor


@numba.njit(error_model="numpy")
def scaled_ten_times_into(window, factor, out):
    for i in range(len(window)):
        x = window[i]
        x = x * factor * factor * factor * factor * factor
        out[i] = x * factor * factor * factor * factor * factor


@numba.njit(error_model="numpy")
def scale_into(samples, width, factor, out, ten, times):
    """Every window into one buffer, over and over."""
    for _ in range(times):
        for at in range(0, len(samples) - width + 1, width):
            if ten:
                scaled_ten_times_into(samples[at : at + width], factor, out)
            else:
                scaled_into(samples[at : at + width], factor, out)


@numba.njit(error_model="numpy")
def scale_allocating(samples, width, factor, ten, times):
    """Every window into a new array; the last one is returned."""
    out = np.empty(width, samples.dtype)
    for _ in range(times):
        for at in range(0, len(samples) - width + 1, width):
            out = np.empty(width, samples.dtype)
            if ten:
                scaled_ten_times_into(samples[at : at + width], factor, out)
            else:
                scaled_into(samples[at : at + width], factor, out)
    return out
