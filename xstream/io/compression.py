"""Files that may be compressed: gz, xz and zst, by their suffix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from xstream.io.quarantine import DamagedInput

__all__ = [
    "SUFFIXES",
    "bare_suffix",
    "compression_of",
    "open_compressed",
    "open_input",
    "open_stream",
]

#: Suffixes, and pyarrow's names of the methods; xz is read by Python's own module.
SUFFIXES = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}
#: What is lost at most of the contents before the place at which the compressed data are damaged.
_PIECE_BYTES = 128 << 10
_XZ_INPUT_BYTES = 1 << 16
#: Enough for all presets of xz (`xz -9` needs 65 MiB); zstd has a limit of its own, 128 MiB.
_XZ_MEMORY_BYTES = 256 << 20


def compression_of(path: Path) -> str | None:
    """The compression method of a file, by its name."""
    return SUFFIXES.get(path.suffix.lower())


def bare_suffix(path: Path) -> str:
    """The suffix without that of the compression, for example `.csv` of `a.csv.gz`."""
    return (path.with_suffix("") if compression_of(path) else path).suffix.lower()


@contextmanager
def open_input(path: Path) -> Iterator[Any]:
    """A stream of the decompressed bytes of a file.

    Raises a DamagedInput where it cannot be read any further.
    """
    stream = None
    try:
        stream = open_stream(path)
        yield stream
    except EOFError as error:
        raise DamagedInput(f"{path} is truncated: {error}") from error
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        if stream is not None:
            stream.close()


def _unreadable(path: Path, error: OSError) -> DamagedInput:
    reason = error.strerror or str(error)
    kind = compression_of(path)
    return DamagedInput(f"{path} cannot be read{f' as {kind}' if kind else ''}: {reason}")


def open_stream(path: Path) -> Any:
    """The same, to be closed by the caller; raises an OSError, or an EOFError if it ends early."""
    method = compression_of(path)
    if method is None:
        return path.open("rb", buffering=0)
    if method == "xz":
        return _Pieces(_XzStream(path))
    import pyarrow as pa

    return _Pieces(pa.CompressedInputStream(pa.OSFile(str(path), "rb"), method))


class _Pieces:
    """A decompressed stream whose memory is bounded by what it contains, not by what is asked for.

    Formats ask for as many bytes as a header announces. Read piece by piece, a length that is not
    true ends with the data. If the decompressor fails, what came before is returned first.
    `NativeFile.read` is not used because it leaks its buffer in that case.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self._done = 0
        #: The error of the decompressor, without the frames that it would keep alive.
        self._failed: tuple[type[Exception], str] | None = None

    def read(self, size: int) -> bytes:
        """Read so many bytes, or fewer at the end."""
        self.check()
        contents = bytearray()  # one block that grows: many small ones would leave gaps behind
        try:
            while size > 0 and len(
                piece := memoryview(self.stream.read_buffer(min(size, _PIECE_BYTES)))
            ):
                contents += piece
                size -= len(piece)
                self._done += len(piece)
        except (OSError, EOFError) as error:
            said = getattr(error, "strerror", None) or error
            self._failed = type(error), f"{said}, after {self._done:,} bytes of contents"
        if not contents:
            self.check()
        return bytes(contents)

    def check(self) -> None:
        """Raise the error of the decompressor, if it has failed."""
        if self._failed is not None:
            kind, said = self._failed
            raise kind(said)

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return bool(self.stream.closed)

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close it."""
        self.stream.close()


class _XzStream:
    """The decompressed bytes of an xz file, of one or several streams.

    `lzma.open` does not bound the memory of a decompressor, which the file announces.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._decompressor = self._fresh()
        self._input = b""

    def _fresh(self) -> Any:
        import lzma

        return lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES)

    def read_buffer(self, size: int) -> bytes:
        """Read up to so many bytes; none are left if there is nothing to return."""
        import lzma

        try:
            while not (data := self._decompressed(size)):
                if self._decompressor.eof:
                    if not self._next_stream():
                        return b""
                elif self._decompressor.needs_input and not self._refill():
                    raise EOFError("the compressed data end before their end marker")
        except lzma.LZMAError as error:
            raise OSError(str(error)) from error
        return data

    def _decompressed(self, size: int) -> bytes:
        if self._decompressor.eof:
            return b""
        given, self._input = self._input, b""
        return cast(bytes, self._decompressor.decompress(given, size))

    def _refill(self) -> bool:
        self._input = self._file.read(_XZ_INPUT_BYTES)
        return bool(self._input)

    def _next_stream(self) -> bool:
        """Begin the next stream, which may follow zeros; return False at the end of the file."""
        rest = self._decompressor.unused_data.lstrip(b"\0")
        while not rest and self._refill():
            rest = self._input.lstrip(b"\0")
        if rest:
            self._input, self._decompressor = rest, self._fresh()
        return bool(rest)

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._file.closed

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_compressed(raw: IO[bytes], method: str | None) -> Any:
    """A stream that compresses its data into `raw`."""
    if method == "gzip":
        import gzip

        return gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0)
    if method == "xz":
        import lzma

        return lzma.open(raw, "wb")
    if method == "zstd":
        import pyarrow as pa

        return pa.CompressedOutputStream(pa.PythonFile(_Unclosed(raw), "w"), method)
    return raw


class _Unclosed:
    """A file that stays open when the stream that writes into it is closed."""

    closed = False

    def __init__(self, raw: IO[bytes]) -> None:
        self.write, self.flush = raw.write, raw.flush

    def close(self) -> None:
        """Leave it open."""
