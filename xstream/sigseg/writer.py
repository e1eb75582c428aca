"""`SegmentWriter`: a segment that is being written and is not shared yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from xstream._native import lib
from xstream.errors import SigSegError
from xstream.sigseg._interop import owned_memory

if TYPE_CHECKING:
    from xstream.sigseg.segment import SigSeg

__all__ = ["SegmentWriter"]


class SegmentWriter:
    """A segment that is being written: fill `array`, then read `segment`.

    As a context manager, it commits at the end of the block and discards the samples on an
    exception. If `array` is still referenced then (by a name or a view), the samples are copied
    once, so that the segment cannot be changed through it.

    >>> import numpy as np, xstream as xs
    >>> writer = xs.SigSeg.build(3, np.int16)
    >>> writer.array[:] = [1, 2, 3]
    >>> segment = writer.commit()
    >>> segment is writer.segment, segment.width
    (True, 3)
    """

    __slots__ = ("_array", "_segment", "_writing")

    def __init__(self, writing: SigSeg) -> None:
        self._writing: SigSeg | None = writing
        self._segment: SigSeg | None = None
        self._array: npt.NDArray[Any] | None = own_array(writing)

    @property
    def array(self) -> npt.NDArray[Any]:
        """The samples, writable until the commit."""
        if self._array is None:
            raise SigSegError("this segment is already committed or discarded")
        return self._array

    @property
    def segment(self) -> SigSeg:
        """The committed segment."""
        if self._segment is None:
            raise SigSegError("this segment is not committed")
        return self._segment

    def commit(self) -> SigSeg:
        """Make the samples final and return the segment."""
        if self._writing is None:
            raise SigSegError("this segment is already committed or discarded")
        seg, self._array, self._writing = self._writing, None, None
        # The array, and every view of its memory, holds a reference to the segment.
        if seg._width and not lib.xs_seg_is_own(seg._handle):
            seg = seg._private_copy()
        self._segment = seg
        return seg

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None and self._writing is not None:
            self.commit()
        self._array = self._writing = None


def own_array(seg: SigSeg) -> npt.NDArray[Any]:
    """Return the block of an unshared segment as a writable array, which keeps it alive."""
    if not seg._width:
        return np.empty(0, seg.dtype)
    keep = lib.xs_seg_ref(seg._handle)
    data = lib.xs_seg_own_data(keep)
    return np.ndarray(
        (seg._width,), seg.dtype, buffer=owned_memory(data, seg.nbytes, lib.xs_seg_drop_data, keep)
    )
