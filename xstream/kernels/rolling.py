"""`Rolling`: a segment that a kernel keeps between calls, appended to and cut like any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from xstream.errors import KernelError

__all__ = ["PlainRolling", "Rolling"]


@dataclass(frozen=True)
class Rolling:
    """Declares a state that holds the latest samples of something, as one segment.

    A kernel adds samples at the end of the segment and cuts it at its front. What that costs is
    decided by the memory manager of the run: under `refcount-lazy` nothing is copied.

    In the kernel, a state of this kind has `start` and `stop`, the indices of what it holds, and:

    * `room(n)`: an array for `n` new samples, which are not initialised;
    * `append(n)`: add the first `n` samples of that array to the segment;
    * `at(start, n)`: the samples from index `start` on, as an array that may be written to;
    * `cut(start)`: drop everything before index `start`.

    An array from `at` is valid until the next `append` or `cut`. Samples that were appended
    together are not copied.

    >>> import numpy as np, xstream as xs
    >>> @xs.kernel(state={"recent": xs.Rolling(np.float32)})
    ... def peak_of_four(window, state):
    ...     recent = state.recent
    ...     recent.room(len(window))[:] = window
    ...     recent.append(len(window))
    ...     recent.cut(recent.stop - 4)
    ...     return recent.at(recent.start, recent.stop - recent.start).max()
    >>> q = xs.Query()
    >>> samples = np.array([9, 1, 2, 3, 4, 5], np.float32)
    >>> out = q.source(xs.io.array(samples, window=2)).map(peak_of_four).collect()
    >>> q.run()[out]
    [9.0, 9.0, 5.0]
    """

    dtype: npt.DTypeLike

    def __post_init__(self) -> None:
        try:
            dtype = np.dtype(self.dtype)
        except TypeError:
            raise KernelError(f"xs.Rolling takes a dtype, not {self.dtype!r}") from None
        if dtype.hasobject or not dtype.itemsize:
            raise KernelError(f"xs.Rolling cannot hold samples of type {dtype}")
        object.__setattr__(self, "dtype", dtype)

    @property
    def sample(self) -> np.dtype[Any]:
        """The type of its samples.

        >>> Rolling(np.int16).sample
        dtype('int16')
        """
        return np.dtype(self.dtype)

    def plain(self) -> PlainRolling:
        """The state of an uncompiled kernel.

        >>> recent = Rolling(np.int16).plain()
        >>> recent.room(2)[:] = [5, 6]
        >>> recent.append(2)
        >>> recent.at(0, 2).tolist()
        [5, 6]
        """
        return PlainRolling(self.sample)


class PlainRolling:
    """A rolling segment of an uncompiled kernel.

    >>> recent = Rolling(np.int16).plain()
    >>> recent.room(3)[:] = [5, 6, 7]
    >>> recent.append(3)
    >>> recent.cut(1)
    >>> recent.start, recent.stop, recent.at(1, 2).tolist()
    (1, 3, [6, 7])
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.start, self.samples = 0, _empty(0, dtype)
        self._room = _empty(0, dtype)

    @property
    def stop(self) -> int:
        """The index after the last sample."""
        return self.start + len(self.samples)

    def room(self, n: int) -> NDArray[Any]:
        """An array for `n` new samples."""
        self._room = _empty(n, self.samples.dtype)
        return self._room

    def append(self, n: int) -> None:
        """Add the first `n` samples of the room."""
        if not 0 <= n <= len(self._room):
            raise ValueError(APPENDS_MORE)
        joined = _empty(len(self.samples) + n, self.samples.dtype)
        joined[: len(self.samples)], joined[len(self.samples) :] = self.samples, self._room[:n]
        self.samples = joined
        self._room = self._room[:0]

    def at(self, start: int, n: int) -> NDArray[Any]:
        """The samples from index `start` on."""
        if n < 0 or start < self.start or start + n > self.stop:
            raise IndexError(VIEWS_OUTSIDE)
        return self.samples[start - self.start : start - self.start + n]

    def cut(self, start: int) -> None:
        """Drop everything before index `start`."""
        start = min(max(start, self.start), self.stop)
        self.samples, self.start = self.samples[start - self.start :], start


def _empty(n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Fields of records are attributes, as they are in compiled code."""
    array = np.zeros(n, dtype)
    return array.view(np.recarray) if dtype.names else array


APPENDS_MORE = "a rolling segment cannot append more samples than there is room for"
VIEWS_OUTSIDE = "a view of a rolling segment lies outside of what it holds"
