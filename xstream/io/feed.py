"""`Feed`: a thread that reads blocks ahead of the engine and hands them to a native source."""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream._native import ffi, lib
from xstream.engine.attachment import Outcome, Position
from xstream.engine.native import NativePlan, checked
from xstream.errors import InputError, SegmentMemoryError
from xstream.io.quarantine import Quarantine

__all__ = ["READ_AHEAD_BLOCKS", "Block", "BlockReader", "Feed", "Pool"]

#: One array for each column of a source, all of one length. A reader never writes to them again.
Block = Sequence[npt.NDArray[Any]]
#: Opens the input at a row and yields the blocks from there; closed when no longer needed.
BlockReader = Callable[[int], Iterator[Block]]

#: The largest number of blocks that are read ahead.
READ_AHEAD_BLOCKS = 8
_PATIENCE_NS = 100_000_000
LAYOUTS = {"fields": lib.XS_AS_FIELDS, "streams": lib.XS_AS_STREAMS, "rows": lib.XS_AS_ROWS}


class Feed:
    """Runs a block reader in a thread of its own, at most a few blocks ahead of the engine.

    Arrays that are contiguous and aligned become segments without a copy: the segments keep the
    arrays alive. `row_samples` is the number of samples of the source per row of the reader.
    """

    def __init__(
        self,
        plan: NativePlan,
        reader: BlockReader,
        dtypes: Sequence[np.dtype[Any]],
        identity: Position,
        *,
        row_samples: int = 1,
        read_ahead: int = READ_AHEAD_BLOCKS,
        quarantine: Quarantine | None = None,
    ) -> None:
        self.error: BaseException | None = None
        self.reader, self.dtypes, self.identity = reader, tuple(dtypes), dict(identity)
        self.row_samples, self.quarantine = row_samples, quarantine
        self.manager = plan.manager
        self.first = 0
        self.op: Any = None
        handle = lib.xs_feed_new(len(self.dtypes), read_ahead)
        if not handle:
            raise SegmentMemoryError("no memory is left for a source")
        self.handle = ffi.gc(handle, lib.xs_feed_drop)
        self._thread: threading.Thread | None = None

    def source(self, plan: NativePlan, layout: str, window: int, partial: bool) -> Any:
        """The native source that takes the blocks."""
        self.op = checked(
            lib.xs_op_feed_source(plan.handle, self.handle, LAYOUTS[layout], window, partial)
        )
        plan.attach(self.op, self)
        return self.op

    # -- the run -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Start reading."""
        if self.quarantine is not None:
            self.quarantine.open()
        lib.xs_feed_source_begin(self.op, self.first)
        self._thread = threading.Thread(target=self._read, name="xstream reader", daemon=True)
        self._thread.start()

    def end(self, outcome: Outcome) -> None:
        """Stop reading and drop the blocks that were read ahead."""
        lib.xs_feed_abandon(self.handle)
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self.quarantine is not None:
            self.quarantine.close()

    def position(self) -> Position:
        """The position of the next sample."""
        return self.position_of(self.next_sample())

    def next_sample(self) -> int:
        """The index of the next sample to be emitted."""
        return int(lib.xs_feed_source_position(self.op))

    def position_of(self, sample: int) -> Position:
        """The position of a sample, with the identity of the file."""
        return {"sample": sample, **self.identity}

    def restore(self, position: Position) -> None:
        """Start at another sample of the same file."""
        same = {name: position.get(name) for name in self.identity}
        if same != self.identity:
            changes = [
                f"{name} was {same[name]} and is {value}"
                for name, value in self.identity.items()
                if same[name] != value
            ]
            raise InputError(f"the file has changed: {', '.join(changes)}")
        self.first = int(position["sample"])

    # -- reading -----------------------------------------------------------------------------

    def _read(self) -> None:
        """The body of the thread: hand over blocks until the engine takes no more."""
        try:
            row, skipped = divmod(self.first, self.row_samples)
            blocks = self.reader(row)
            index = row * self.row_samples
            try:
                for block in blocks:
                    length = len(block[0])
                    if skipped < length and not self._push(block, index, skipped):
                        return
                    skipped = max(skipped - length, 0)
                    index += length
            finally:
                close = getattr(blocks, "close", None)
                if close is not None:
                    close()
            lib.xs_feed_close(self.handle, 0)
        except BaseException as error:
            self.error = error
            lib.xs_feed_close(self.handle, 1)

    def arrived_ns(self) -> int:
        """When the current block has arrived; 0 if it was there already, as those of files."""
        return 0

    def _push(self, block: Block, index: int, skipped: int) -> bool:
        """Hand over a block; return whether the engine took it."""
        columns = ffi.new("xs_seg *[]", len(self.dtypes))
        for i, (samples, dtype) in enumerate(zip(block, self.dtypes, strict=True)):
            columns[i] = self._segment(samples[skipped:], dtype, index + skipped)
            if not columns[i]:
                self._drop(columns)
                raise self.manager.out_of_memory(f"a block of {len(samples):,} samples")
        outcome, arrived_ns = 1, self.arrived_ns()
        while outcome == 1:
            outcome = lib.xs_feed_push(self.handle, columns, arrived_ns, _PATIENCE_NS)
        if outcome:
            self._drop(columns)
        return not outcome

    def _segment(self, samples: npt.NDArray[Any], dtype: np.dtype[Any], index: int) -> Any:
        own = np.require(samples, dtype, ["C", "A"])
        booked = 0 if _is_mapped(own) else own.nbytes
        return lib.xs_seg_of_python(
            self.manager._handle, index, len(own), dtype.itemsize,
            ffi.cast("void *", own.__array_interface__["data"][0]), booked,
            ffi.cast("void *", id(own)),
        )  # fmt: skip

    def _drop(self, columns: Any) -> None:
        for column in columns:
            if column:
                lib.xs_seg_drop(column)


def _is_mapped(samples: npt.NDArray[Any]) -> bool:
    """Whether samples are in a mapped file, whose memory the memory manager does not count."""
    owner: Any = samples
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, mmap.mmap)


class Pool:
    """Arrays for a reader to fill, reused as soon as no segment refers to them.

    Writing to memory in use is faster than to fresh memory. If a query keeps its segments, their
    arrays are not reused.

    >>> pool = Pool((4, 2), np.dtype("f4"))
    >>> first = pool.take()
    >>> view = first[1:]
    >>> del first
    >>> second = pool.take()                    # the first is still looked into
    >>> np.may_share_memory(view, second)
    False
    >>> del view, second
    >>> len({id(pool.take()) for _ in range(10)})
    1
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype
        self._arrays: list[npt.NDArray[Any]] = []

    def take(self) -> npt.NDArray[Any]:
        """An array that nothing else refers to."""
        for i in range(len(self._arrays)):
            if sys.getrefcount(self._arrays[i]) == _ONLY_THE_POOL:
                return self._arrays[i]
        fresh: npt.NDArray[Any] = np.empty(self.shape, self.dtype)
        self._arrays.append(fresh)
        del self._arrays[: -READ_AHEAD_BLOCKS - 3]
        return fresh


#: The reference count of an array that only the list refers to, while it is being checked.
_ONLY_THE_POOL = 2
