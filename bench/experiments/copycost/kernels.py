"""The two readings of X * X: sample by sample, and the dot product."""

import numba
import numpy as np

import xstream as xs


@xs.kernel(each=True)
def square(x):
    """Every sample times itself."""
    return x * x


@numba.njit(fastmath={"reassoc", "contract"}, error_model="numpy")
def energy(window):
    """The dot product of a window with itself, in the order that vector units prefer."""
    total = np.float32(0.0)
    for i in range(len(window)):
        total += window[i] * window[i]
    return total


@xs.kernel
def has_energy(window):
    """Passes the window on, as an operator of a chain does, once its energy is known."""
    return energy(window) >= 0.0
