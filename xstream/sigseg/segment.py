"""`SigSeg`: a window of evenly spaced samples; an immutable value that is passed by reference."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from html import escape
from typing import Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from xstream._native import ffi, lib
from xstream.errors import SegmentRangeError, SigSegError
from xstream.sigseg import _interop
from xstream.sigseg._pairs import distance_error, range_error, same_content, unify_signals
from xstream.sigseg.manager import MemoryManager, current_manager
from xstream.sigseg.span import Signal, Span, checked_range, checked_timebase
from xstream.sigseg.timebase import Timebase
from xstream.sigseg.writer import SegmentWriter, own_array

__all__ = ["SigSeg"]

_append, _subseg, _drop = lib.xs_seg_append, lib.xs_seg_subseg, lib.xs_seg_drop

#: Samples that a notebook draws of a segment.
MOST_SHOWN = 1 << 20


class SigSeg(Span):
    """Samples [start, stop) of a signal: immutable, and passed between operators without copying.

    >>> import numpy as np, xstream as xs
    >>> tb = xs.Timebase(rate_hz=1000.0)
    >>> a = xs.SigSeg(np.arange(4, dtype=np.int16), start=0, timebase=tb)
    >>> b = xs.SigSeg(np.arange(4, 6, dtype=np.int16), start=4, timebase=tb)
    >>> a.append(b)
    <SigSeg 6 samples [0, 6) int16 at 1000 Hz, 2 pieces, refcount-lazy>
    >>> np.asarray(a.append(b).subseg(3, 2))
    array([3, 4], dtype=int16)

    Its laws, each with a property test (`tests/sigseg/test_laws.py`):

    * append is associative: `a.append(b).append(c) == a.append(b.append(c))`;
    * a segment of width 0 is its unit: `null.append(a) == a == a.append(null)`;
    * cutting distributes over joining: a subseg of `a.append(b)` is the append of the subsegs
      of `a` and `b` that it covers;
    * the value of a segment depends only on its samples, not on how they are divided into pieces,
      on the manager or on operations on other segments; no operation changes a segment;
    * time and index are inverse: `seg.index_at(seg.time_of(i)) == i`;
    * appending across a gap, an overlap, another timebase, dtype or manager is an error that
      names both sides.
    """

    __slots__ = ("__weakref__", "_array")

    _array: npt.NDArray[Any] | None

    def __init__(
        self,
        samples: npt.ArrayLike,
        start: int = 0,
        timebase: Timebase | None = None,
        memory: str | MemoryManager | None = None,
    ) -> None:
        self._handle = None
        array = np.asarray(samples)
        if array.ndim != 1:
            raise SigSegError(f"samples must have one dimension, not {array.ndim}")
        dtype = _interop.holdable_dtype(array.dtype)
        _occupy(self, len(array), dtype, start, timebase, memory)
        own_array(self)[:] = array

    @classmethod
    def null(
        cls,
        timebase: Timebase | None = None,
        dtype: npt.DTypeLike = np.float32,
        memory: str | MemoryManager | None = None,
    ) -> SigSeg:
        """Return the segment of width 0: the unit of append, with which accumulators start.

        >>> SigSeg.null(Timebase(rate_hz=8.0), np.int16).width
        0
        """
        seg = cls.__new__(cls)
        seg._handle = None
        _occupy(seg, 0, _interop.holdable_dtype(dtype), 0, timebase, memory)
        return seg

    @classmethod
    def build(
        cls,
        width: int,
        dtype: npt.DTypeLike = np.float32,
        start: int = 0,
        timebase: Timebase | None = None,
        memory: str | MemoryManager | None = None,
    ) -> SegmentWriter:
        """Return a buffer that is filled in place and committed without a copy.

        >>> with SigSeg.build(4, np.float64) as buffer:
        ...     buffer.array[:] = 1.5
        >>> np.asarray(buffer.segment)
        array([1.5, 1.5, 1.5, 1.5])
        """
        seg = cls.__new__(cls)
        seg._handle = None
        _occupy(seg, width, _interop.holdable_dtype(dtype), start, timebase, memory)
        return SegmentWriter(seg)

    # -- passing, joining, cutting -----------------------------------------------------------

    def share(self) -> SigSeg:
        """Pass the segment like to an operator: another reference, or a copy with copy-always.

        >>> SigSeg(np.arange(3)).share() == SigSeg(np.arange(3))
        True
        """
        handle = lib.xs_seg_share(self._handle)
        return _wrap(handle, self._start, self._width, self)

    def append(self, other: SigSeg) -> SigSeg:
        """Return the samples of both, which must be adjacent in the same signal.

        >>> a = SigSeg(np.zeros(3, dtype=np.float32))
        >>> a.append(SigSeg(np.zeros(2, dtype=np.float32), start=5))
        Traceback (most recent call last):
        xstream.errors.NotAdjacentError: cannot append [5, 7) to [0, 3): there is a gap of 2 samples
        """
        if other.__class__ is not SigSeg or self._signal is not other._signal:
            unify_signals(self, other)
        width, more = self._width, other._width
        start = self._start if width else other._start
        if width and more and other._start != start + width:
            raise distance_error(self, other)
        if self._array is not None and self.memory == "refcount-realloc":
            # Only a cache; kept any longer, it would pin a block that has to grow.
            self._array = None
        handle = _append(self._handle, other._handle)
        return _wrap(handle, start, width + more, self)

    def subseg(self, start: int, width: int) -> SigSeg:
        """Return `width` samples from index `start` of the signal; most managers share the memory.

        >>> SigSeg(np.arange(5, dtype=np.int8), start=10).subseg(12, 9)
        Traceback (most recent call last):
        xstream.errors.SegmentRangeError: [12, 21) is not inside the segment [10, 15)
        """
        mine = self._start
        if width.__class__ is not int or start.__class__ is not int:
            start, width = operator.index(start), operator.index(width)
        if width < 0 or start < mine or start + width > mine + self._width:
            raise range_error(self, start, width)
        handle = _subseg(self._handle, start, width)
        return _wrap(handle, start, width, self)

    def edit(self, consume: bool = False) -> SegmentWriter:
        """Return a private copy to change and commit; this segment and its arrays do not change.

        With `consume=True` this object cannot be used afterwards. Its samples are then changed in
        place, without a copy, if nothing else refers to them: no other operator, sink or segment,
        and no array. An operator that gets windows and passes them on changed needs no other copy.

        >>> seg = SigSeg(np.zeros(3, dtype=np.int32))
        >>> with seg.edit() as e:
        ...     e.array[1] = 7
        >>> np.asarray(e.segment), np.asarray(seg)
        (array([0, 7, 0], dtype=int32), array([0, 0, 0], dtype=int32))
        """
        return SegmentWriter(self._consumed() if consume else self._private_copy())

    def _consumed(self) -> SigSeg:
        """The segment for writing under another name; this one is given up."""
        self._array = None  # only a cache, and a reference
        handle = lib.xs_seg_edit_own(self._handle)
        written = _wrap(handle, self._start, self._width, self)
        self._handle = None
        self.__class__ = _Consumed
        return written

    def _private_copy(self) -> SigSeg:
        return _wrap(lib.xs_seg_edit(self._handle), self._start, self._width, self)

    # -- reading -----------------------------------------------------------------------------

    def materialise(self) -> npt.NDArray[Any]:
        """Return all samples as one read-only array, without a copy if they are contiguous.

        Otherwise they are copied once, and the copy is kept for further calls.

        >>> SigSeg(np.arange(2)).append(SigSeg(np.arange(2), start=2)).materialise()
        array([0, 1, 0, 1])
        """
        array = self._array
        if array is None:
            array = self._array = self._first_view()
        return array

    def _first_view(self) -> npt.NDArray[Any]:
        if not self._width:
            array = np.empty(0, self.dtype)
            array.flags.writeable = False
            return array
        hold = ffi.new("xs_block **")
        data = lib.xs_seg_hold(self._handle, hold)
        if not data:
            raise self.manager.out_of_memory(f"one range of {self.nbytes:,} bytes")
        return _interop.view_of(data, self._width, self.dtype, hold[0])

    def chunks(self) -> Iterator[npt.NDArray[Any]]:
        """Return the samples as read-only arrays in order, one per piece; never copies.

        >>> [chunk.tolist() for chunk in SigSeg(np.arange(3)).chunks()]
        [[0, 1, 2]]
        """
        hold, width = ffi.new("xs_block **"), ffi.new("int64_t *")
        for piece in range(self.pieces):
            data = lib.xs_seg_hold_piece(self._handle, piece, width, hold)
            yield _interop.view_of(data, width[0], self.dtype, hold[0])

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is None and dtype is None:
            return self.materialise()
        wanted = self.dtype if dtype is None else np.dtype(dtype)
        if copy is False:
            if wanted != self.dtype:
                raise ValueError(f"{self!r} cannot be read as {wanted} without a copy")
            if not lib.xs_seg_is_flat(self._handle):
                raise ValueError(f"{self!r} cannot be one array without a copy: read its chunks()")
        array = self.materialise()
        if copy:
            return array.astype(wanted)
        return array if wanted == self.dtype else array.astype(wanted)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow as pa

        type_ = _interop.arrow_type(self.dtype)
        arrays = [_interop.arrow_array(chunk, type_) for chunk in self.chunks()]
        return pa.chunked_array(arrays, type_).__arrow_c_stream__(requested_schema)

    def __dlpack__(self, **options: Any) -> object:
        _interop.check_dlpack(self.dtype)
        return self.materialise().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # the CPU

    def __len__(self) -> int:
        return self._width

    def __iter__(self) -> Iterator[Any]:
        for chunk in self.chunks():
            yield from chunk

    @overload
    def __getitem__(self, key: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> SigSeg: ...
    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        """Return sample `seg[i]` or segment `seg[i:j]`; positions count from `start`."""
        if isinstance(key, slice):
            first, stop, step = key.indices(self._width)
            if step != 1:
                raise SegmentRangeError(
                    f"a segment cannot be sliced with a step of {step}: slice np.asarray(seg)"
                )
            return self.subseg(self._start + first, max(stop - first, 0))
        position = operator.index(key)
        if not -self._width <= position < self._width:
            raise SegmentRangeError(f"position {position} is outside {self._width} samples")
        sample = np.empty(1, self.dtype)
        index = self._start + position % self._width
        lib.xs_seg_read(self._handle, index, 1, ffi.from_buffer(sample.view(np.uint8)))
        return sample[0]

    # -- comparison, repr, release -----------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SigSeg):
            return NotImplemented
        if (
            self._width != other._width
            or self.dtype != other.dtype
            or self.timebase != other.timebase
        ):
            return False
        if not self._width:
            return True
        if self._start != other._start:
            return False
        return same_content(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> SigSeg:
        return self

    def __deepcopy__(self, _: object) -> SigSeg:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a SigSeg cannot be pickled: send np.asarray(seg), start and timebase")

    def __repr__(self) -> str:
        if self._handle is None:
            return "<SigSeg, not built>"
        rate = "index" if self.timebase.is_index else f"at {self.timebase}"
        pieces = self.pieces
        return (
            f"<SigSeg {self._width} samples [{self._start}, {self.stop}) {self.dtype} {rate}, "
            f"{pieces} {'piece' if pieces == 1 else 'pieces'}, {self.memory}>"
        )

    def _repr_html_(self) -> str:
        """The first samples as a curve, for notebooks."""
        from xstream.sigseg.waveform import waveform

        shown = self if self.width <= MOST_SHOWN else self.subseg(self.start, MOST_SHOWN)
        drawn = waveform(np.asarray(shown))
        part = f"<br>the first {MOST_SHOWN:,} samples are drawn" if shown is not self else ""
        return f"<div><code>{escape(repr(self))}</code>{part}<br>{drawn}</div>"

    def __del__(self, drop: Any = _drop) -> None:
        if self._handle is not None:
            drop(self._handle)


class _Consumed(SigSeg):
    """What is left of a segment after `edit(consume=True)`."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return _Consumed
        if name == "__wrapped__":  # asked by inspect of every object
            raise AttributeError(name)
        raise SigSegError("this segment was consumed by edit(consume=True)")

    def __repr__(self) -> str:
        return "<SigSeg, consumed>"

    def __del__(self, drop: Any = None) -> None:
        """Nothing is left to release."""


#: Stands for a segment that an operator has consumed.
CONSUMED = object.__new__(_Consumed)


def _occupy(
    seg: SigSeg,
    width: int,
    dtype: np.dtype[Any],
    start: int,
    timebase: Timebase | None,
    memory: str | MemoryManager | None,
) -> None:
    """Initialise `seg` with a block of uninitialised samples."""
    width, start = checked_range(width, start)
    timebase = checked_timebase(timebase)
    manager = current_manager(memory)
    handle = lib.xs_seg_new(manager._handle, start, width, dtype.itemsize)
    if not handle:
        raise manager.out_of_memory(f"a segment of {width:,} samples of {dtype}")
    seg._handle = handle
    seg._start, seg._width, seg._array = start, width, None
    seg._signal = Signal(dtype, timebase, manager)


def adopt(
    handle: Any, start: int, width: int, signal: Signal,
    new: Any = object.__new__, cls: Any = SigSeg,
) -> SigSeg:  # fmt: skip
    """Wrap a segment of the C core; takes over the caller's reference."""
    seg: SigSeg = new(cls)
    seg._handle = handle
    seg._start = start
    seg._width = width
    seg._signal = signal
    seg._array = None
    return seg


def _wrap(
    handle: Any, start: int, width: int, like: SigSeg, new: Any = object.__new__, cls: Any = SigSeg
) -> SigSeg:
    if not handle:
        raise like.manager.out_of_memory(f"a segment of {width:,} samples of {like.dtype}")
    seg: SigSeg = new(cls)
    seg._handle = handle
    seg._start = start
    seg._width = width
    seg._signal = like._signal
    seg._array = None
    return seg
