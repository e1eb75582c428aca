"""Hann windows, Fourier transforms and the Haar wavelet, over segments that hold many windows."""

from __future__ import annotations

import math

import numpy as np
from numba.extending import overload, register_jitable


def hanning(window, weights, out):
    """Each run of len(weights) samples times the weights."""
    size = len(weights)
    if len(window) % size:
        raise ValueError("the segment does not hold whole windows")
    for at in range(0, len(window), size):
        samples, weighed = window[at : at + size], out[at : at + size]
        for i in range(size):
            weighed[i] = samples[i] * weights[i]


# -- Fourier -----------------------------------------------------------------------------------
# Compiled code uses rocket-fft, which writes into the output; uncompiled code uses scipy.


def rfft_into(real, spectrum, size):
    """The half spectrum of every `size` samples."""
    from scipy import fft

    spectrum[:] = fft.rfft(real.reshape(-1, size)).ravel()


def irfft_into(spectrum, real, size):
    """Every `size` samples from their half spectrum."""
    from scipy import fft

    bins = size // 2 + 1
    real[:] = fft.irfft(spectrum.reshape(-1, bins), size).ravel()


def cfft_into(samples, out, size, forward):
    """The spectrum of every `size` complex samples, or the inverse."""
    from scipy import fft

    transform = fft.fft if forward else fft.ifft
    out[:] = transform(samples.reshape(-1, size)).ravel()


@overload(rfft_into)
def _rfft_into(real, spectrum, size):
    from rocket_fft import r2c

    def compiled(real, spectrum, size):
        rows = len(real) // size
        if rows:
            r2c(real.reshape(rows, size), spectrum.reshape(rows, size // 2 + 1), np.array([1]),
                True, 1.0, 1)  # fmt: skip

    return compiled


@overload(irfft_into)
def _irfft_into(spectrum, real, size):
    from rocket_fft import c2r

    def compiled(spectrum, real, size):
        rows = len(real) // size
        if rows:
            c2r(spectrum.reshape(rows, size // 2 + 1), real.reshape(rows, size), np.array([1]),
                False, 1.0 / size, 1)  # fmt: skip

    return compiled


@overload(cfft_into)
def _cfft_into(samples, out, size, forward):
    from rocket_fft import c2c

    def compiled(samples, out, size, forward):
        rows = len(samples) // size
        if rows:
            scale = 1.0 if forward else 1.0 / size
            c2c(samples.reshape(rows, size), out.reshape(rows, size), np.array([1]), forward,
                scale, 1)  # fmt: skip

    return compiled


def rfft(window, size, out):
    """The half spectrum of each run of `size` real samples."""
    if len(window) % size:
        raise ValueError("the segment does not hold whole windows")
    rfft_into(window, out, size)


def rfft_converted(window, size, scratch, out):
    """The half spectrum of samples that are not floats; they become the type of `scratch`."""
    if len(window) % size:
        raise ValueError("the segment does not hold whole windows")
    real = np.empty(len(window), scratch.dtype)
    for i in range(len(window)):
        real[i] = window[i]
    rfft_into(real, out, size)


def irfft(window, size, out):
    """`size` real samples from each half spectrum."""
    if len(window) % (size // 2 + 1):
        raise ValueError("the segment does not hold whole half spectra")
    irfft_into(window, out, size)


def cfft(window, size, forward, out):
    """The spectrum of each run of `size` complex samples, or the inverse."""
    if len(window) % size:
        raise ValueError("the segment does not hold whole windows")
    cfft_into(window, out, size, forward)


# -- Haar --------------------------------------------------------------------------------------


@register_jitable
def haar_step(samples, width, detail):
    """Halves samples[:width] in place to their scaled sums; the differences go to `detail`."""
    scale = math.sqrt(0.5)
    for i in range(width // 2):
        a, b = samples[2 * i], samples[2 * i + 1]
        samples[i] = (a + b) * scale
        detail[i] = (a - b) * scale


@register_jitable
def working_copy(window, level):
    """A copy of the samples in float64; checks that the width can be halved `level` times."""
    if len(window) % (1 << level):
        raise ValueError("the width of a window must be a multiple of 2 ** level")
    samples = np.empty(len(window), np.float64)
    for i in range(len(window)):
        samples[i] = window[i]
    return samples


def haar_detail(window, level, out):
    """The differences at one level of the orthonormal Haar transform."""
    samples = working_copy(window, level)
    width = len(window)
    scratch = np.empty(width // 2, np.float64)
    for _ in range(level):
        haar_step(samples, width, scratch)
        width //= 2
    for i in range(width):
        out[i] = scratch[i]


def haar_bands(window, level, out):
    """All bands: the differences of levels 1 to `level`, then the remaining sums."""
    samples = working_copy(window, level)
    width = len(window)
    scratch = np.empty(width // 2, np.float64)
    for k in range(level):
        haar_step(samples, width, scratch)
        width //= 2
        detail = out[k]
        for i in range(width):
            detail[i] = scratch[i]
    rest = out[level]
    for i in range(width):
        rest[i] = samples[i]
