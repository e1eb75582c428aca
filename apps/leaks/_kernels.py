"""LeakDetect, the one operator that is PIPELINE's own."""

import numba

import xstream as xs

#: Of Gaussian noise the deviation is so many times the mean of its absolute values.
DEVIATION_OF_MEAN = 1.2533


@numba.njit(fastmath={"reassoc", "contract"})
def mean_absolute(samples):
    total = 0.0
    for i in range(len(samples)):
        total += abs(samples[i])
    return total / len(samples)


@xs.kernel(out={"start": int, "ratio": float})
def leak_detect(details, first, rest, second, third, fourth, level, guard, limit, sigmas, out):
    """The front is the largest swing, the echo the largest one behind it.

    A front near an end of the window belongs to the window beside it, which has it whole. One that
    does not stand out of the noise is none: noise has echoes of any size.
    """
    at = len(details) - len(rest)
    if at * level < guard or (len(rest) - 1) * level < guard:
        return
    front = first - second
    if front <= sigmas * DEVIATION_OF_MEAN * mean_absolute(details):
        return
    ratio = (third - fourth) / front
    if abs(ratio) < limit:
        out.emit((out.start + at) * level, ratio)
