"""Files that may be compressed: gz, xz and zst, by their suffix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from xstream.errors import InputError

__all__ = ["SUFFIXES", "bare_suffix", "compression_of", "open_compressed", "open_input"]

#: Suffixes, and pyarrow's names of the methods; xz is read by Python's own module.
SUFFIXES = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}


def compression_of(path: Path) -> str | None:
    """The compression method of a file, by its name."""
    return SUFFIXES.get(path.suffix.lower())


def bare_suffix(path: Path) -> str:
    """The suffix without that of the compression, for example `.csv` of `a.csv.gz`."""
    return (path.with_suffix("") if compression_of(path) else path).suffix.lower()


@contextmanager
def open_input(path: Path) -> Iterator[Any]:
    """A stream of the decompressed bytes of a file; raises an InputError if it cannot be read."""
    stream = None
    try:
        stream = _opened(path, compression_of(path))
        yield stream
    except EOFError as error:
        raise InputError(f"{path} is truncated: {error}") from error
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        if stream is not None:
            stream.close()


def _unreadable(path: Path, error: OSError) -> InputError:
    reason = error.strerror or str(error)
    kind = compression_of(path)
    return InputError(f"{path} cannot be read{f' as {kind}' if kind else ''}: {reason}")


def _opened(path: Path, method: str | None) -> Any:
    if method is None:
        return path.open("rb", buffering=0)
    if method == "xz":
        import lzma

        return _Checked(lzma.open(path, "rb"), lzma.LZMAError)
    import pyarrow as pa

    return pa.CompressedInputStream(pa.OSFile(str(path), "rb"), method)


class _Checked:
    """A stream that raises errors of its decompressor as OSError."""

    def __init__(self, stream: Any, error: type[Exception]) -> None:
        self.stream, self.error = stream, error

    def read(self, size: int = -1) -> bytes:
        """Read up to the given number of bytes."""
        try:
            return cast(bytes, self.stream.read(size))
        except self.error as error:
            raise OSError(str(error)) from error

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
