"""`xs.io.raw`: samples as plain bytes, mapped into memory; also the base of other mapped files."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream.errors import GraphError, InputError, SchemaError
from xstream.io.compression import compression_of, open_compressed, open_input
from xstream.io.feed import READ_AHEAD_BLOCKS, Block
from xstream.io.file import BLOCK_BYTES, SampleFile, read_only_file
from xstream.io.output import Columns, OutputFile, Signals
from xstream.io.quarantine import Quarantine
from xstream.sigseg._interop import holdable_dtype

__all__ = ["FrameWriter", "RawFile", "frames_of", "mapped_blocks", "raw", "same_dtype"]

#: Blocks that are not copied may be larger, and fewer of them are read ahead.
MAPPED_BLOCK_BYTES = 8 << 20
MAPPED_READ_AHEAD = 2
#: The number of blocks of a mapped file that stay in memory after they were read.
_BEHIND = MAPPED_READ_AHEAD + 2


@dataclass(frozen=True, eq=False)
class RawFile(SampleFile):
    """Frames of samples of one type, without a header."""

    kind = "raw"
    dtype: Any = np.float32
    channels: int = 1
    offset: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        holdable_dtype(self.dtype)
        for name, least in (("channels", 1), ("offset", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or not least <= value <= 2**40:
                raise GraphError(f"raw: {name} is a whole number from {least} on, not {value!r}")

    @property
    def read_ahead(self) -> int:
        return MAPPED_READ_AHEAD if compression_of(self.path) is None else READ_AHEAD_BLOCKS

    @property
    def sample(self) -> np.dtype[Any]:
        """The type of a sample in the file, in the byte order of the file."""
        sample: np.dtype[Any] = np.dtype(self.dtype)
        return sample

    @property
    def frame_bytes(self) -> int:
        """The size of one sample of every channel."""
        return self.sample.itemsize * self.channels

    def frame(self) -> tuple[np.dtype[Any], int, float | None, int | None]:
        read_only_file(self.kind, self.path)
        frames = None
        if compression_of(self.path) is None:
            size = self.path.stat().st_size
            if self.offset > size:
                raise InputError(f"raw: {self.path} has {size:,} bytes, offset is {self.offset:,}")
            frames = (size - self.offset) // self.frame_bytes
        return holdable_dtype(self.sample), self.channels, self.rate_hz, frames

    def blocks(self, row: int, quarantine: Quarantine | None) -> Iterator[Block]:
        if compression_of(self.path) is not None:
            yield from self._decompressed(row, quarantine)
            return
        size = self.path.stat().st_size
        frames = (size - self.offset) // self.frame_bytes
        if frames:
            with self.path.open("rb") as file:
                memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            samples = np.frombuffer(memory, self.sample, frames * self.channels, self.offset)
            yield from mapped_blocks(
                self, samples.reshape(frames, self.channels), row, memory, self.offset
            )
        self._check_end(frames, (size - self.offset) % self.frame_bytes, quarantine)

    def _decompressed(self, row: int, quarantine: Quarantine | None) -> Iterator[Block]:
        """Compressed files are read from the beginning, even if the source starts later."""
        skip = self.offset + row * self.frame_bytes
        size = self.block_rows(self.sample, self.channels) * self.frame_bytes
        frames, rest = row, b""
        with open_input(self.path) as stream:
            while skip and (skipped := len(stream.read(min(skip, size)))):
                skip -= skipped
            while piece := stream.read(size - len(rest)):
                piece = rest + piece
                whole = len(piece) // self.frame_bytes
                rest = piece[whole * self.frame_bytes :]
                samples = np.frombuffer(piece, self.sample, whole * self.channels)
                frames += whole
                if whole:
                    yield self.columns_of(samples.reshape(whole, self.channels))
        self._check_end(frames, len(rest), quarantine)

    def _check_end(self, frames: int, rest: int, quarantine: Quarantine | None) -> None:
        if not rest:
            return
        at = self.offset + frames * self.frame_bytes
        reason = f"the file ends {rest} bytes into frame {frames}, which has {self.frame_bytes}"
        if quarantine is None:
            raise InputError(f"{self.path}: byte {at}: {reason}")
        quarantine.put(self.path, "byte", at, reason, "")

    def check_signals(self, signals: Signals) -> None:
        same_dtype(self.kind, signals)

    def writer(self, output: OutputFile, signals: Signals) -> FrameWriter:
        return FrameWriter(output, signals.dtypes[0], compression_of(self.path))


def mapped_blocks(
    file: SampleFile, frames: npt.NDArray[Any], row: int, memory: mmap.mmap, offset: int
) -> Iterator[Block]:
    """Blocks of a mapped file, starting at a row. Pages that were read long ago are released."""
    row_bytes = frames.strides[0]
    one_column = file.layout == "interleaved" or frames.shape[1] == 1
    size = MAPPED_BLOCK_BYTES if one_column else BLOCK_BYTES
    step = file.block_rows(frames.dtype, frames.shape[1], size)
    one_range = frames.flags.c_contiguous
    if one_range:
        memory.madvise(mmap.MADV_SEQUENTIAL)
    given_back = 0
    for at in range(row, len(frames), step):
        yield file.columns_of(frames[at : at + step])
        behind = offset + (at - _BEHIND * step) * row_bytes
        behind -= behind % mmap.PAGESIZE
        if one_range and behind > given_back:
            memory.madvise(mmap.MADV_DONTNEED, given_back, behind - given_back)
            given_back = behind


def same_dtype(kind: str, signals: Signals) -> None:
    """Raise a SchemaError unless all columns have one type."""
    if len(set(signals.dtypes)) > 1:
        raise SchemaError(
            f"write {kind}, port 'in': needs fields of one type, not "
            f"{', '.join(map(str, signals.dtypes))}"
        )


def frames_of(columns: Columns) -> npt.NDArray[Any]:
    """Interleave columns into frames."""
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


class FrameWriter:
    """Writes frames after a header of fixed size, which is completed at the end."""

    def __init__(
        self, output: OutputFile, dtype: np.dtype[Any], compression: str | None = None
    ) -> None:
        self.output, self.dtype = output, dtype
        self.compression = compression
        self.stream: Any = open_compressed(output.file, compression)
        self.write_header()

    def write_header(self) -> None:
        """The header for the frames that have been written so far."""

    def write(self, columns: Columns) -> None:
        """Append frames."""
        frames = np.ascontiguousarray(frames_of(columns), self.dtype)
        self.stream.write(frames.reshape(-1).view(np.uint8).data)

    def commit(self) -> int | None:
        """Flush everything to disk; compressed files cannot be cut back."""
        if self.compression is not None:
            return None
        self.write_header()
        return self.output.sync()

    def finish(self) -> None:
        """Complete the file."""
        self.write_header()
        if self.compression is not None:
            self.stream.close()
        self.output.complete()

    def abort(self) -> None:
        """Leave it incomplete."""
        self.output.close()


def raw(
    path: str | Path,
    dtype: npt.DTypeLike = np.float32,
    rate_hz: float | None = None,
    window: int = 4096,
    *,
    channels: int = 1,
    offset: int = 0,
    **options: Any,
) -> RawFile:
    """Samples without a header: frames of `channels` samples of one type, from byte `offset` on.

    The file is mapped into memory and not copied; gz, xz and zst files are decompressed. As a sink
    it writes the same. The other options are those of all files (docs/sources.md).

    >>> import numpy as np, xstream as xs
    >>> _ = np.arange(6, dtype="<i2").tofile("six.raw")
    >>> q = xs.Query()
    >>> out = q.source(xs.io.raw("six.raw", np.int16, rate_hz=2.0, window=4)).collect()
    >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
    [[0, 1, 2, 3], [4, 5]]
    """
    return RawFile(
        Path(path), window, rate_hz=rate_hz, dtype=dtype, channels=channels, offset=offset,
        **options,
    )  # fmt: skip
