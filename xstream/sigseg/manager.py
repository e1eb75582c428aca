"""Memory managers: how to choose one, and their counters.

The four differ in the cost of passing, joining and cutting a segment (XStream, section III.B); the
samples of a segment are the same under all of them. `docs/memory-managers.md` compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, SupportsIndex

from xstream._native import ffi, lib
from xstream.errors import ManagerError, SegmentMemoryError

__all__ = [
    "MANAGER_NAMES",
    "REASONS",
    "MemoryManager",
    "MemoryStats",
    "current_manager",
    "memory_manager",
]

_KINDS: dict[str, int] = {
    "copy-always": lib.XS_COPY_ALWAYS,
    "refcount-copy": lib.XS_REFCOUNT_COPY,
    "refcount-realloc": lib.XS_REFCOUNT_REALLOC,
    "refcount-lazy": lib.XS_REFCOUNT_LAZY,
}
#: The values of `memory=`, simplest manager first.
MANAGER_NAMES: tuple[str, ...] = tuple(_KINDS)
DEFAULT_NAME = "refcount-lazy"
#: Reasons for copies, in the order of the counters in C.
REASONS = ("pass", "append", "subseg", "materialise", "edit")
_UNLIMITED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """The counters of a manager; read as attributes or as a mapping.

    `live_*` and `peak_bytes` describe the current state, the rest are totals. `bytes_copied` is the
    sum of `copied_for`, which counts bytes by reason: pass, append, subseg, materialise or edit.

    >>> import numpy as np, xstream as xs
    >>> with xs.memory_manager("copy-always") as manager:
    ...     shared = xs.SigSeg(np.zeros(4, np.int16)).share()
    ...     stats = manager.stats()
    >>> stats.bytes_copied, stats["copied_for"]["pass"]
    (8, 8)
    >>> "peak_bytes" in list(stats.keys())
    True
    """

    live_segments: int
    live_blocks: int
    live_bytes: int
    peak_bytes: int
    allocations: int
    reallocations: int
    moved_reallocations: int
    pinned_copies: int
    shares: int
    appends: int
    subsegs: int
    materialisations: int
    edits: int
    bytes_copied: int
    copied_for: dict[str, int]

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> tuple[str, ...]:
        """Iterate over the names of the counters, so that `dict(stats)` works."""
        return tuple(field.name for field in fields(self))


class MemoryManager:
    """A memory manager with its own counters.

    Used as a context manager, it is the default of new segments in the block:

    >>> import numpy as np, xstream as xs
    >>> with xs.memory_manager("copy-always") as mm:
    ...     seg = xs.SigSeg(np.zeros(1000, dtype=np.float32))
    ...     passed = seg.share()
    >>> mm.stats().live_blocks, mm.stats().bytes_copied
    (2, 4000)

    Segments live as long as they are referenced, also after the `with` block and the manager.
    `limit_bytes` limits the total size of its blocks.
    """

    __slots__ = ("_handle", "limit_bytes", "name")

    def __init__(self, name: str = DEFAULT_NAME, *, limit_bytes: int | None = None) -> None:
        if not isinstance(name, str) or name not in _KINDS:
            known = ", ".join(MANAGER_NAMES)
            raise ManagerError(f"there is no memory manager {name!r}: choose one of {known}")
        whole = isinstance(limit_bytes, SupportsIndex) and not isinstance(limit_bytes, bool)
        if limit_bytes is not None and not whole:
            raise ManagerError(f"limit_bytes must be an integer, not {limit_bytes!r}")
        if limit_bytes is not None and limit_bytes <= 0:
            raise ManagerError(f"limit_bytes must be positive, not {limit_bytes}")
        handle = lib.xs_manager_new(_KINDS[name], min(limit_bytes or _UNLIMITED, _UNLIMITED))
        if not handle:
            raise SegmentMemoryError("out of memory: a memory manager cannot be created")
        self.name = name
        self.limit_bytes = limit_bytes
        self._handle = ffi.gc(handle, lib.xs_manager_drop)

    def stats(self) -> MemoryStats:
        """Return the current counters."""
        counters = ffi.new("xs_counters *")
        lib.xs_manager_counters(self._handle, counters)
        copied = {why: counters.bytes_copied[i] for i, why in enumerate(REASONS)}
        plain = {
            field.name: getattr(counters, field.name)
            for field in fields(MemoryStats)
            if field.name not in ("bytes_copied", "copied_for")
        }
        return MemoryStats(**plain, bytes_copied=sum(copied.values()), copied_for=copied)

    def __enter__(self) -> MemoryManager:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _entered.set(_entered.get()[:-1])

    def __repr__(self) -> str:
        live = self.stats()
        return f"<MemoryManager {self.name}, {live.live_bytes} bytes in {live.live_blocks} blocks>"

    def out_of_memory(self, what: str) -> SegmentMemoryError:
        """Return the error for a failed allocation.

        >>> import xstream as xs
        >>> with xs.memory_manager("refcount-lazy") as manager:
        ...     type(manager.out_of_memory(10)).__name__
        'SegmentMemoryError'
        """
        if self.limit_bytes is not None:
            return SegmentMemoryError(
                f"{what} does not fit: {self.name} may hold {self.limit_bytes:,} bytes "
                f"and holds {self.stats().live_bytes:,}"
            )
        return SegmentMemoryError(f"{what} does not fit into memory")


#: The managers of the surrounding `with` blocks, innermost last, per thread and task.
_entered: ContextVar[tuple[MemoryManager, ...]] = ContextVar("xstream_memory_managers", default=())


def memory_manager(name: str = DEFAULT_NAME, *, limit_bytes: int | None = None) -> MemoryManager:
    """Return a new manager with its own counters, for `with` or for `memory=`.

    >>> with memory_manager("refcount-realloc", limit_bytes=2**30) as mm:
    ...     mm.name
    'refcount-realloc'
    """
    return MemoryManager(name, limit_bytes=limit_bytes)


@cache
def _shared_manager(name: str) -> MemoryManager:
    return MemoryManager(name)


def current_manager(memory: str | MemoryManager | None = None) -> MemoryManager:
    """Resolve `memory=`: a manager, a name, or None for that of the `with` block or the default."""
    if isinstance(memory, MemoryManager):
        return memory
    inside = _entered.get()
    if memory is None:
        return inside[-1] if inside else _shared_manager(DEFAULT_NAME)
    if inside and inside[-1].name == memory:
        return inside[-1]
    return _shared_manager(memory)
