"""LeakDetect, the only operator that is specific to PIPELINE."""

import numba

import xstream as xs

#: Ratio of the deviation of Gaussian noise to the mean of its absolute values.
DEVIATION_OF_MEAN = 1.2533


@numba.njit(fastmath={"reassoc", "contract"})
def mean_absolute(samples):
    total = 0.0
    for i in range(len(samples)):
        total += abs(samples[i])
    return total / len(samples)


@xs.kernel(out={"start": int, "ratio": float})
def leak_detect(details, first, rest, second, third, fourth, level, guard, limit, sigmas, out):
    """Detect a leak: the front is the largest swing, and the echo is the largest one after it.

    A front near the end of a window belongs to the next window, which contains all of it. A front
    that does not exceed the noise is ignored, because noise has echoes of any size.
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
