"""`xs.io.wav`: sound files: WAV, FLAC, OGG and the other formats of libsndfile."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream.console import require_package
from xstream.errors import GraphError, InputError, SchemaError
from xstream.io.feed import Block, Pool
from xstream.io.file import SampleFile, read_only_file
from xstream.io.output import Columns, OutputFile, Signals, TableWriter
from xstream.io.quarantine import DamagedInput, Quarantine
from xstream.io.raw import FrameWriter, frames_of, same_dtype

__all__ = ["WavFile", "wav"]

_DTYPES = ("int16", "int32", "float32", "float64")
#: How many frames are read at once if a larger number of them contains damage.
_FEW_FRAMES = 1024
_WAV_SUFFIXES = (".wav", ".wave")
#: Sample types in a WAV file: the tag of the format, and libsndfile's name.
_TAGS = {"uint8": 1, "int16": 1, "int32": 1, "float32": 3, "float64": 3}


@dataclass(frozen=True, eq=False)
class WavFile(SampleFile):
    """Frames of a sound file."""

    kind = "wav"
    dtype: str = "float32"
    subtype: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dtype not in _DTYPES:
            raise GraphError(f"wav: dtype is one of {', '.join(_DTYPES)}, not {self.dtype!r}")
        require_package("soundfile")

    def frame(self) -> tuple[np.dtype[Any], int, float | None, int | None]:
        read_only_file(self.kind, self.path)
        with self._opened() as sound:
            return np.dtype(self.dtype), sound.channels, float(sound.samplerate), sound.frames

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import soundfile

        try:
            with soundfile.SoundFile(self.path) as sound:
                yield sound
        except soundfile.LibsndfileError as error:
            raise DamagedInput(
                f"wav: {self.path} cannot be read as a sound file: {error.error_string}"
            ) from error

    def blocks(self, row: int, quarantine: Quarantine | None) -> Iterator[Block]:
        with self._opened() as sound:
            declared = max(_declared_frames(self.path) or 0, sound.frames)
            step = self.block_rows(np.dtype(self.dtype), sound.channels)
        try:
            for frames in self._frames(row, step):
                yield self.columns_of(frames)
                row += len(frames)
                del frames  # so that the pool can reuse its array
        except DamagedInput:  # the block with the damage again, so that less of it is lost
            for frames in self._frames(row, _FEW_FRAMES):
                yield self.columns_of(frames)
                row += len(frames)
        if row < declared:
            reason = f"the file ends after {row:,} of {declared:,} frames"
            if quarantine is None:
                raise InputError(f"{self.path}: {reason}")
            quarantine.put(self.path, "frame", row, reason, "")

    def _frames(self, row: int, step: int) -> Iterator[npt.NDArray[Any]]:
        """The frames from a row on, so many at once."""
        with self._opened() as sound:
            if row:
                sound.seek(min(row, sound.frames))
            pool = Pool((step, sound.channels), np.dtype(self.dtype))
            read = step
            while read == step:
                frames = pool.take()
                read = sound.buffer_read_into(frames.data.cast("B"), self.dtype)
                if read:
                    yield frames[:read]
                del frames

    def check_signals(self, signals: Signals) -> None:
        same_dtype(self.kind, signals)
        if signals.timebase.rate_hz is None or not _whole_rate(signals.timebase.rate_hz):
            raise SchemaError(
                "write wav, port 'in': a sound file has a whole number of samples a second, not "
                f"{signals.timebase}"
            )
        if signals.dtypes[0].name not in _TAGS or len(signals.names) > 1024:
            raise SchemaError(
                f"write wav, port 'in': needs up to 1024 fields of {', '.join(_TAGS)}, not "
                f"{len(signals.names)} of {signals.dtypes[0]}"
            )

    def writer(self, output: OutputFile, signals: Signals) -> TableWriter:
        if self.path.suffix.lower() in _WAV_SUFFIXES and self.subtype is None:
            return RiffWriter(output, signals)
        return SoundWriter(output, signals, self.subtype)


def _whole_rate(rate_hz: float) -> bool:
    return rate_hz == int(rate_hz) and 1 <= rate_hz < 2**31


def _declared_frames(path: Path) -> int | None:
    """The number of frames by the header of a WAV file; libsndfile accepts a truncated file."""
    with path.open("rb") as file:
        if file.read(4) != b"RIFF" or len(file.read(4)) < 4 or file.read(4) != b"WAVE":
            return None
        frame_bytes = 0
        while len(chunk := file.read(8)) == 8:
            name, size = struct.unpack("<4sI", chunk)
            if name == b"fmt ":
                head = file.read(min(size, 64)).ljust(16, b"\0")
                tag, frame_bytes = (
                    struct.unpack_from("<H", head)[0],
                    struct.unpack_from("<H", head, 12)[0],
                )
                if tag not in (1, 3, 0xFFFE):
                    return None  # compressed: the size does not give the number of frames
                size -= min(size, 64)
            if name == b"data":
                streamed = size >= 0xFFFFFFFF - 8  # written to a pipe: the length was not known
                return None if streamed or not frame_bytes else size // frame_bytes
            file.seek(size + size % 2, 1)
    return None


class RiffWriter(FrameWriter):
    """A WAV file, with its sizes completed at every commit; RF64 from 4 GiB on."""

    HEADER_BYTES = 80

    def __init__(self, output: OutputFile, signals: Signals) -> None:
        self.rate_hz = int(signals.timebase.rate_hz or 0)
        self.channels = len(signals.names)
        super().__init__(output, signals.dtypes[0])

    def write_header(self) -> None:
        file = self.output.file
        end = max(file.seek(0, 2), self.HEADER_BYTES)
        data = end - self.HEADER_BYTES
        riff = end + data % 2 - 8
        large = riff >= 2**32
        frame_bytes = self.dtype.itemsize * self.channels
        sizes = struct.pack("<QQQI", riff, data, data // frame_bytes, 0) if large else bytes(28)
        file.seek(0)
        file.write(
            struct.pack(
                "<4sI4s4sI28s4sIHHIIHH4sI",
                b"RF64" if large else b"RIFF", min(riff, 2**32 - 1), b"WAVE",
                b"ds64" if large else b"JUNK", 28, sizes,
                b"fmt ", 16, _TAGS[self.dtype.name], self.channels, self.rate_hz,
                self.rate_hz * frame_bytes, frame_bytes, self.dtype.itemsize * 8,
                b"data", min(data, 2**32 - 1),
            )
        )  # fmt: skip
        file.seek(end)

    def finish(self) -> None:
        self.write_header()
        if self.output.file.tell() % 2:
            self.output.file.write(b"\0")
        self.output.complete()


class SoundWriter:
    """Writes any other sound file with libsndfile; it cannot be cut back."""

    def __init__(self, output: OutputFile, signals: Signals, subtype: str | None) -> None:
        import soundfile

        self.output = output
        form = output.path.suffix.lstrip(".").upper()
        form = "WAV" if form == "WAVE" else form
        try:
            self.sound = soundfile.SoundFile(
                output.file.fileno(), "w", int(signals.timebase.rate_hz or 0), len(signals.names),
                subtype, format=form, closefd=False,
            )  # fmt: skip
        except (soundfile.LibsndfileError, ValueError, TypeError) as error:
            raise InputError(f"{output.path} cannot be written as a sound file: {error}") from error

    def write(self, columns: Columns) -> None:
        """Append frames."""
        self.sound.write(frames_of(columns))

    def commit(self) -> int | None:
        """Flush the file to disk."""
        self.sound.flush()
        return None

    def finish(self) -> None:
        """Complete the file."""
        self.sound.close()
        self.output.complete()

    def abort(self) -> None:
        """Leave it incomplete."""
        self.sound.close()
        self.output.close()


def wav(
    path: str | Path,
    window: int = 4096,
    *,
    dtype: str = "float32",
    subtype: str | None = None,
    **options: Any,
) -> WavFile:
    """A sound file (WAV, FLAC, OGG) as a stream of segments, at the rate of the file.

    Several channels become the fields `ch0`, `ch1` and so on of one stream, separate streams
    (`layout="streams"`, with `query.sources`), or one stream of interleaved samples
    (`layout="interleaved"`). Samples are read as `dtype`. As a sink it writes the format of the
    suffix; `subtype` is libsndfile's, such as PCM_16. The other options are those of all files
    (docs/sources.md). Requires soundfile: `pip install 'xstream[audio]'`.

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> tone = np.sin(np.arange(8_000) * 0.1).astype(np.float32)
    >>> written = q.source(xs.io.array(tone, rate_hz=8_000.0)).write(xs.io.wav("tone.wav"))
    >>> run = q.run()
    >>> q = xs.Query()
    >>> out = q.source(xs.io.wav("tone.wav", window=1000)).collect()
    >>> windows = q.run()[out]
    >>> len(windows), windows[0]
    (8, <SigSeg 1000 samples [0, 1000) float32 at 8000 Hz, 1 piece, refcount-lazy>)
    """
    return WavFile(Path(path), window, dtype=dtype, subtype=subtype, **options)
