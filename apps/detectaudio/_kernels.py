"""The only operator that is specific to DETECTAUDIO."""

from fractions import Fraction
from functools import lru_cache

import numpy as np

import xstream as xs


def score_spectra(spectrum, weights, out):
    bins = len(weights)
    for i in range(len(out)):
        total = np.float32(0.0)
        first = i * bins
        for k in range(bins):
            z = spectrum[first + k]
            total += weights[k] * np.sqrt(z.real * z.real + z.imag * z.imag)
        out[i] = total


@lru_cache
def score(bins: int) -> xs.Kernel:
    """Return a weighted sum of the magnitudes of each half spectrum."""
    return xs.kernel(out=xs.Out("float32", rate=Fraction(1, bins)))(score_spectra)
