"""`Span`: which samples of which signal a segment holds."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from xstream._native import lib
from xstream.errors import SegmentRangeError, TimebaseError
from xstream.sigseg.manager import MemoryManager
from xstream.sigseg.timebase import MAX_INDEX, Timebase

__all__ = ["Signal", "Span", "checked_range", "checked_timebase"]


class Signal:
    """The common properties of all segments of a signal: dtype, timebase and manager."""

    __slots__ = ("dtype", "manager", "timebase")

    def __init__(self, dtype: np.dtype[Any], timebase: Timebase, manager: MemoryManager) -> None:
        self.dtype, self.timebase, self.manager = dtype, timebase, manager


class Span:
    """The samples [start, stop) of a signal; `SigSeg` has their values."""

    __slots__ = ("_handle", "_signal", "_start", "_width")

    _handle: Any
    _signal: Signal
    _start: int
    _width: int

    @property
    def width(self) -> int:
        """The number of samples."""
        return self._width

    @property
    def start(self) -> int:
        """The index of the first sample in its signal.

        >>> import numpy as np, xstream as xs
        >>> xs.SigSeg(np.zeros(3), start=10).start
        10
        """
        return self._start

    @property
    def stop(self) -> int:
        """The index after the last sample.

        >>> import numpy as np, xstream as xs
        >>> xs.SigSeg(np.zeros(3), start=10).stop
        13
        """
        return self._start + self._width

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a sample.

        >>> import numpy as np, xstream as xs
        >>> xs.SigSeg(np.zeros(3)).dtype
        dtype('float64')
        """
        return self._signal.dtype

    @property
    def timebase(self) -> Timebase:
        """The relation of indices and time.

        >>> import numpy as np, xstream as xs
        >>> xs.SigSeg(np.zeros(3), timebase=xs.Timebase(rate_hz=8.0)).timebase.rate_hz
        8.0
        """
        return self._signal.timebase

    @property
    def memory(self) -> str:
        """The name of its memory manager.

        >>> import numpy as np, xstream as xs
        >>> xs.SigSeg(np.zeros(3), memory="copy-always").memory
        'copy-always'
        """
        return self._signal.manager.name

    @property
    def manager(self) -> MemoryManager:
        """Its memory manager, with the counters.

        >>> import numpy as np, xstream as xs
        >>> xs.SigSeg(np.zeros(3), memory="copy-always").manager.name
        'copy-always'
        """
        return self._signal.manager

    @property
    def pieces(self) -> int:
        """The number of contiguous ranges of its samples; more than one only with refcount-lazy.

        >>> import numpy as np, xstream as xs
        >>> xs.SigSeg(np.zeros(3)).append(xs.SigSeg(np.zeros(3), start=3)).pieces
        2
        """
        return int(lib.xs_seg_pieces(self._handle))

    @property
    def nbytes(self) -> int:
        """The size of its samples in bytes.

        >>> import numpy as np, xstream as xs
        >>> xs.SigSeg(np.zeros(3)).nbytes
        24
        """
        return self._width * self.dtype.itemsize

    def time_of(self, index: int) -> float:
        """Return the time of sample `index` of the signal, in seconds.

        >>> import numpy as np, xstream as xs
        >>> xs.SigSeg(np.zeros(3), timebase=xs.Timebase(rate_hz=8.0)).time_of(2)
        0.25
        """
        return self.timebase.time_of(index)

    def index_at(self, time: float) -> int:
        """Return the index of the last sample at or before `time`.

        >>> import numpy as np, xstream as xs
        >>> xs.SigSeg(np.zeros(3), timebase=xs.Timebase(rate_hz=8.0)).index_at(0.3)
        2
        """
        return self.timebase.index_at(time)


def checked_range(width: int, start: int) -> tuple[int, int]:
    """Return the width and the start of a segment; raise an error if there is no such segment."""
    width, start = operator.index(width), operator.index(start)
    if width < 0:
        raise SegmentRangeError(f"a segment cannot have {width} samples")
    if not (start >= -MAX_INDEX and start + width <= MAX_INDEX):
        raise SegmentRangeError(f"[{start}, {start + width}) is outside the indices of a signal")
    return width, start


def checked_timebase(timebase: Timebase | None) -> Timebase:
    """Return the timebase of a segment, which may be given as None."""
    if timebase is not None and not isinstance(timebase, Timebase):
        raise TimebaseError(f"timebase must be a Timebase, not {timebase!r}")
    return timebase or Timebase.index()
