"""Operations on segments inside the C core, without a Python call per step."""

from __future__ import annotations

from typing import Any

from xstream._native import ffi, lib

import xstream as xs

PIECE = 256  # samples
ITEMSIZE = 4  # float32


class Accumulator:
    """A segment that grows by appends inside the core."""

    def __init__(self, memory: str, piece: int = PIECE) -> None:
        self.manager = xs.memory_manager(memory)
        self.piece = piece
        self._slot = ffi.new("xs_seg **")
        self._slot[0] = lib.xs_seg_new(self.manager._handle, 0, piece, ITEMSIZE)
        ffi.buffer(lib.xs_seg_own_data(self._slot[0]), piece * ITEMSIZE)[:] = bytes(
            piece * ITEMSIZE
        )

    @property
    def handle(self) -> Any:
        return self._slot[0]

    @property
    def pieces(self) -> int:
        return int(lib.xs_seg_pieces(self.handle))

    @property
    def width(self) -> int:
        return int(lib.xs_seg_width(self.handle))

    def grow(self, count: int, keep: int = 0) -> float:
        """Append `count` pieces, keeping the last `keep` samples if given; return ns per append."""
        spent = lib.xs_seg_time_appends(self._slot, count, self.piece, keep)
        assert spent >= 0, "out of memory"
        return float(spent) / count

    def drop(self) -> None:
        lib.xs_seg_drop(self.handle)
        self._slot[0] = ffi.NULL
        assert self.manager.stats().live_blocks == 0
