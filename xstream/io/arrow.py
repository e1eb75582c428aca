"""`xs.io.arrow`: columns of Arrow IPC files and streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xstream.errors import GraphError, InputError
from xstream.io.arrow_socket import ArrowSocket
from xstream.io.compression import bare_suffix, compression_of, open_compressed, open_input
from xstream.io.connection import reconnect_policy
from xstream.io.contents import Contents
from xstream.io.feed import Block
from xstream.io.file import read_only_file
from xstream.io.output import Columns, OutputFile, Signals, TableWriter
from xstream.io.parquet import one_line
from xstream.io.quarantine import DamagedInput, Quarantine
from xstream.io.table import TableFile, arrow_batch, arrow_schema

__all__ = ["ArrowFile", "arrow"]

_FILE_MAGIC = b"ARROW1"
#: The end marker of a stream; a stream that was cut between two batches has none.
_END = b"\xff\xff\xff\xff\0\0\0\0"


@dataclass(frozen=True, eq=False)
class ArrowFile(TableFile):
    """An Arrow IPC file (mapped into memory) or stream."""

    kind = "arrow"

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """A reader of batches, of either form."""
        import pyarrow as pa

        read_only_file(self.kind, self.path)
        try:
            if compression_of(self.path) is not None:
                with open_input(self.path) as stream:
                    try:
                        with pa.ipc.open_stream(stream) as reader:
                            yield reader
                    except (pa.ArrowException, OSError):
                        stream.check()  # the data may have ended because of damage
                        raise
                return
            with pa.memory_map(str(self.path)) as memory:
                is_file = memory.read(len(_FILE_MAGIC)) == _FILE_MAGIC
                memory.seek(0)
                opened = pa.ipc.open_file if is_file else pa.ipc.open_stream
                with opened(memory) as reader:
                    yield reader
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DamagedInput(
                f"arrow: {self.path} cannot be read as Arrow IPC: {one_line(error)}"
            ) from error

    def contents(self) -> Contents:
        with self._opened() as reader:
            return self.contents_of(reader.schema, None)

    def blocks(self, row: int, quarantine: Quarantine | None) -> Iterator[Block]:
        contents = self.contents()
        with self._opened() as reader:
            is_file = hasattr(reader, "num_record_batches")
            yield from self.arrow_blocks(_batches(reader, is_file), contents, row, quarantine)
        if not is_file and compression_of(self.path) is None:
            self._check_end(quarantine)

    def _check_end(self, quarantine: Quarantine | None) -> None:
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            file.seek(max(size - len(_END), 0))
            if file.read() == _END:
                return
        reason = "the stream has no end: it is truncated, or still being written"
        if quarantine is None:
            raise InputError(f"{self.path}: byte {size}: {reason}")
        quarantine.put(self.path, "byte", size, reason, "")

    def writer(self, output: OutputFile, signals: Signals) -> TableWriter:
        schema = arrow_schema(signals, self.index)
        if bare_suffix(self.path) == ".arrows" or compression_of(self.path) is not None:
            return StreamWriter(output, schema, compression_of(self.path))
        return IpcFileWriter(output, schema)


def _batches(reader: Any, is_file: bool) -> Iterator[Any]:
    numbers = range(reader.num_record_batches) if is_file else ()
    for batch in map(reader.get_batch, numbers) if is_file else reader:
        batch.validate(full=True)  # its lengths may be more than its memory holds
        yield batch


class StreamWriter:
    """Writes a stream message by message, so that it can be cut back between two and continued."""

    def __init__(self, output: OutputFile, schema: Any, compression: str | None) -> None:
        self.output, self.schema, self.compression = output, schema, compression
        began = output.file.tell()
        self.stream = open_compressed(output.file, compression)
        if not began:
            self.stream.write(schema.serialize())

    def write(self, columns: Columns) -> None:
        """Write one batch."""
        self.stream.write(arrow_batch(columns, self.schema).serialize())

    def commit(self) -> int | None:
        """Flush the batches to disk; compressed files cannot be cut back."""
        return self.output.sync() if self.compression is None else None

    def finish(self) -> None:
        """Write the end of the stream."""
        self.stream.write(_END)
        if self.compression is not None:
            self.stream.close()
        self.output.complete()

    def abort(self) -> None:
        """Leave the stream without an end."""
        self.output.close()


class IpcFileWriter:
    """Writes a file with a footer, which cannot be cut back."""

    def __init__(self, output: OutputFile, schema: Any) -> None:
        import pyarrow as pa

        self.output, self.schema = output, schema
        self.file = pa.ipc.new_file(output.file, schema)

    def write(self, columns: Columns) -> None:
        """Write one batch."""
        self.file.write_batch(arrow_batch(columns, self.schema))

    def commit(self) -> int | None:
        """A file is only valid when it is complete."""
        return None

    def finish(self) -> None:
        """Write the footer."""
        self.file.close()
        self.output.complete()

    def abort(self) -> None:
        """Leave it without a footer."""
        self.output.close()


def arrow(
    path: str | Path,
    rate_hz: float | None = None,
    window: int = 4096,
    *,
    columns: Sequence[str] | None = None,
    index: bool = False,
    **options: Any,
) -> ArrowFile | ArrowSocket:
    """Columns of an Arrow IPC file or stream, mapped into memory and not copied.

    The form of a file that is read is recognised. As a sink it writes a stream if the suffix is
    `.arrows` (or the file is compressed), else a file. Everything else is as in `xs.io.parquet`.
    IPC files have no checksums: a damaged file may go unnoticed.

    "tcp://host:port" is an Arrow stream over TCP, as a client or with `listen=True`. A source needs
    the `dtype` that it expects, with the names of the columns, and `max_message_bytes` bounds what
    a peer may announce.

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> pairs = q.source(xs.io.iterable([(1, 0.5), (2, 0.25)], out={"n": int, "x": float}))
    >>> written = pairs.write(xs.io.arrow("pairs.arrow"))
    >>> run = q.run()
    >>> q = xs.Query()
    >>> out = q.source(xs.io.arrow("pairs.arrow", layout="rows")).collect()
    >>> q.run()[out]
    [(1, 0.5), (2, 0.25)]
    """
    if isinstance(path, str) and path.startswith("tcp://"):
        if columns is not None or index:
            raise GraphError("arrow: columns and index are options of files")
        options["reconnect"] = reconnect_policy("arrow", options.get("reconnect", False))
        return ArrowSocket(path, rate_hz=rate_hz, window=window, **options)
    return ArrowFile(
        Path(path), window, rate_hz=rate_hz, columns=columns, index=index,  # type: ignore[arg-type]
        **options,
    )  # fmt: skip
