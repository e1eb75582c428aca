"""`xs.io.npy`: arrays saved by numpy, mapped into memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xstream.errors import DtypeError, InputError
from xstream.io.feed import Block
from xstream.io.file import SampleFile, read_only_file
from xstream.io.output import OutputFile, Signals
from xstream.io.quarantine import Quarantine
from xstream.io.raw import MAPPED_READ_AHEAD, FrameWriter, mapped_blocks, same_dtype
from xstream.sigseg._interop import holdable_dtype

__all__ = ["NpyFile", "npy"]

_MAGIC = b"\x93NUMPY\x01\x00"
#: How archives of arrays (npz) begin, for which there is another sentence.
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06")
#: The header size of written files; it is fixed so that the data never move.
_HEADER_BYTES = 256


@dataclass(frozen=True, eq=False)
class NpyFile(SampleFile):
    """An array of samples, or of frames: one row per frame, one column per channel."""

    kind = "npy"
    read_ahead = MAPPED_READ_AHEAD

    def frame(self) -> tuple[np.dtype[Any], int, float | None, int | None]:
        array = self._mapped()
        channels = 1 if array.ndim == 1 else array.shape[1]
        try:
            return holdable_dtype(array.dtype), channels, self.rate_hz, len(array)
        except DtypeError as error:
            raise InputError(f"npy: {self.path}: {error}") from error

    def _mapped(self) -> np.memmap[Any, Any]:
        """The array; objects are never unpickled."""
        read_only_file(self.kind, self.path)
        with self.path.open("rb") as file:
            beginning = file.read(len(_MAGIC))
        if beginning.startswith(_ARCHIVES):
            raise InputError(f"npy: {self.path} is an archive of arrays, not one array")
        try:
            if not beginning.startswith(np.lib.format.MAGIC_PREFIX):
                raise ValueError("it does not begin as one in the NPY format does")
            array = np.lib.format.open_memmap(self.path, mode="r")
        except Exception as error:  # the parser may raise any exception on a damaged header
            cut = _truncated(self.path)
            if cut is None or self.quarantine is None:
                reason = error if cut is None else cut.reason
                raise InputError(
                    f"npy: {self.path} cannot be read as an array: {reason}"
                ) from error
            return np.memmap(self.path, cut.dtype, "r", cut.offset, (cut.rows, *cut.shape[1:]))
        if array.ndim not in (1, 2) or 0 in array.shape[1:]:
            raise InputError(
                f"npy: {self.path} has shape {array.shape}: samples have one dimension, frames two"
            )
        return array

    def blocks(self, row: int, quarantine: Quarantine | None) -> Iterator[Block]:
        array = self._mapped()
        memory: Any = array._mmap  # type: ignore[attr-defined]
        if memory is not None:
            header = array.offset % 4096  # relative to the page at which the mapping begins
            frames = np.asarray(array)
            frames = frames[:, np.newaxis] if frames.ndim == 1 else frames
            yield from mapped_blocks(self, frames, row, memory, header)
        cut = None if quarantine is None else _truncated(self.path)
        if quarantine is not None and cut is not None:
            quarantine.put(self.path, "frame", cut.rows, cut.reason, "")

    def check_signals(self, signals: Signals) -> None:
        same_dtype(self.kind, signals)

    def writer(self, output: OutputFile, signals: Signals) -> NpyWriter:
        return NpyWriter(output, signals.dtypes[0], len(signals.names))


class _Truncated(NamedTuple):
    """A file with fewer rows than its header says."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    rows: int

    @property
    def reason(self) -> str:
        """What is wrong with the file."""
        return f"the file ends after {self.rows:,} of {self.shape[0]:,} frames"


def _truncated(path: Path) -> _Truncated | None:
    """What is left of a file that was truncated behind its first row; None if it was not."""
    headers = {
        (1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0,
    }  # fmt: skip
    with path.open("rb") as file:
        try:
            shape, by_column, dtype = headers[np.lib.format.read_magic(file)](file)
        except Exception:  # as above
            return None
        offset, size = file.tell(), file.seek(0, 2)
    row_bytes = math.prod(shape[1:]) * dtype.itemsize
    if len(shape) not in (1, 2) or (by_column and len(shape) == 2) or row_bytes <= 0:
        return None
    rows = (size - offset) // row_bytes
    return _Truncated(dtype, shape, offset, rows) if 0 < rows < shape[0] else None


class NpyWriter(FrameWriter):
    """Writes frames after a header of version 1.0."""

    def __init__(self, output: OutputFile, dtype: np.dtype[Any], channels: int) -> None:
        self.channels = channels
        super().__init__(output, dtype)

    def write_header(self) -> None:
        file = self.output.file
        end = max(file.seek(0, 2), _HEADER_BYTES)
        rows = (end - _HEADER_BYTES) // (self.dtype.itemsize * self.channels)
        shape = (rows,) if self.channels == 1 else (rows, self.channels)
        descr = np.lib.format.dtype_to_descr(self.dtype)
        text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode("latin1")
        room = _HEADER_BYTES - len(_MAGIC) - 2
        if len(text) >= room:
            raise InputError(f"{self.output.path}: the type {self.dtype} is too long for a header")
        file.seek(0)
        file.write(_MAGIC + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n")
        file.seek(end)


def npy(
    path: str | Path,
    rate_hz: float | None = None,
    window: int = 4096,
    **options: Any,
) -> NpyFile:
    """A saved array as a stream of segments: of one dimension, or frames, a column per channel.

    The file is mapped into memory and not copied. As a sink it writes such a file. The other
    options are those of all files (docs/sources.md).

    >>> import numpy as np, xstream as xs
    >>> np.save("ramp.npy", np.arange(5, dtype=np.float32))
    >>> q = xs.Query()
    >>> out = q.source(xs.io.npy("ramp.npy", rate_hz=8.0, window=3)).collect()
    >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
    [[0.0, 1.0, 2.0], [3.0, 4.0]]
    """
    return NpyFile(Path(path), window, rate_hz=rate_hz, **options)
