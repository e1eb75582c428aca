"""Kernels that several tests share: each compiles once."""

from __future__ import annotations

import numpy as np

import xstream as xs


@xs.kernel
def keep_all(window):
    return True


@xs.kernel
def louder(window, alpha):
    return np.std(window) > alpha


@xs.kernel
def doubled(window):
    return window * 2


@xs.kernel
def mean_and_ends(window):
    return window.mean(), len(window), window[:1], window[-1:]


@xs.kernel(
    state={"n": np.zeros(1, np.int64), "kept": np.zeros(2)}, out={"n": int, "kept": xs.Out("f8")}
)
def remember_and_tell(window, state, out):
    """Keeps the first sample of every window; tells all of them every third time."""
    n = state.n[0]
    kept = xs.grow(state.kept, n + 1)
    kept[n] = window[0]
    state.n[0] = n + 1
    if (n + 1) % 3 == 0:
        out.emit(n + 1, kept[: n + 1])


@xs.kernel
def halve(level, hops):
    return level / 2, hops + 1


@xs.kernel
def above(level, hops, threshold):
    return level > threshold


@xs.kernel
def below(level, hops, threshold):
    return level <= threshold


@xs.kernel(out={"index": int, "value": float})
def twice_or_not(index, value, out):
    if index % 3 != 0:
        out.emit(index, value)
    if index % 3 == 2:
        out.emit(index, -value)


@xs.kernel(state=np.zeros(4, np.float64))
def fails_at_five(window, state):
    state[0] += 1
    if state[0] == 5:
        raise ValueError("the fifth window is one too many")
    return True


@xs.kernel
def copied(window):
    """The same samples again: an output of its own, so calls nest."""
    return window * 1


@xs.kernel
def one_more(level, hops):
    return level, hops + 1


@xs.kernel
def hops_left(level, hops, most):
    return hops < most


@xs.kernel(state={"n": np.zeros(1, np.int64), "sum": np.zeros(1)}, out=(int, float), at_end=True)
def sum_at_end(n, x, state, out):
    if out.ended:
        out.emit(state.n[0], state.sum[0])
        return
    state.n[0] += 1
    state.sum[0] += x


@xs.kernel
def negative(n, x):
    return n, -x


@xs.kernel
def above_zero(index, value):
    return value > 0.0


@xs.kernel
def positive_mean(f3, f0, f2):
    return f0 > 0.0
