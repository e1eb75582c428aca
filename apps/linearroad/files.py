"""Files that are written under a temporary name and renamed when complete; checksums."""

from __future__ import annotations

import hashlib
import io
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from linearroad.storage import make_folder, rename, writable

__all__ = [
    "TRAFFIC_COLUMNS", "TableWriter", "checksum", "int32_schema", "load_array", "save_array",
    "table_writer", "whole",
]  # fmt: skip

TRAFFIC_COLUMNS = (
    *("type", "time", "vid", "spd", "xway", "lane", "dir", "seg", "pos"),
    *("qid", "sinit", "send", "dow", "tod", "day"),
)
# A dictionary does not help columns with many different values and takes time. Ascending columns
# are stored as differences. LZ4 is read twice as fast as Zstandard.
PLAIN_COLUMNS = frozenset({"vid", "pos", "qid", "tolls"})
ASCENDING_COLUMNS = frozenset({"vid"})


_TEMPORARY = re.compile(r"\..+\.[0-9a-f]+\.tmp")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that is renamed at the end, or removed if anything fails.

    A worker that is killed leaves at most a hidden temporary file, which the next run removes.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        rename(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_temporaries(directory: Path) -> None:
    """Remove temporary files of `whole` that killed workers left behind."""
    for leftover in directory.rglob(".*.tmp"):
        if _TEMPORARY.fullmatch(leftover.name):
            leftover.unlink(missing_ok=True)


_BLOCK_BYTES = 1 << 22


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal; in large blocks, so that other threads hardly wait."""
    digest, block = hashlib.sha256(), bytearray(_BLOCK_BYTES)
    with path.open("rb", buffering=0) as file:
        while read := file.readinto(block):
            digest.update(memoryview(block)[:read])
    return digest.hexdigest()


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array as a .npy file that appears when it is complete."""
    with whole(path) as temporary, temporary.open("wb") as file:
        np.save(file, array)


def load_array(path: Path) -> NDArray[Any]:
    """The array of a .npy file."""
    array: NDArray[Any] = np.load(io.BytesIO(path.read_bytes()))
    return array


def int32_schema(columns: tuple[str, ...]) -> Any:
    """An Arrow schema of int32 columns without nulls."""
    return pa.schema([pa.field(name, pa.int32(), nullable=False) for name in columns])


class TableWriter(Protocol):
    """Takes blocks of rows, as one int32 array of shape (columns, rows)."""

    def write(self, block: NDArray[np.int32]) -> None:
        """Append the rows of a block."""


class _ParquetWriter:
    def __init__(self, path: Any, columns: tuple[str, ...]) -> None:
        self.schema = int32_schema(columns)
        self.file = pq.ParquetWriter(
            path,
            self.schema,
            compression="lz4",
            use_dictionary=[name for name in columns if name not in PLAIN_COLUMNS],
            column_encoding={
                name: "DELTA_BINARY_PACKED" for name in columns if name in ASCENDING_COLUMNS
            },
            write_page_checksum=True,
        )

    def write(self, block: NDArray[np.int32]) -> None:
        table = pa.Table.from_arrays([pa.array(column) for column in block], schema=self.schema)
        self.file.write_table(table, row_group_size=max(len(table), 1))

    def close(self) -> None:
        self.file.close()


class _CsvWriter:
    def __init__(self, path: Any, columns: tuple[str, ...]) -> None:
        self.schema = int32_schema(columns)
        options = pacsv.WriteOptions(include_header=False, quoting_style="none")
        self.file = pacsv.CSVWriter(path, self.schema, write_options=options)

    def write(self, block: NDArray[np.int32]) -> None:
        self.file.write_table(
            pa.Table.from_arrays([pa.array(column) for column in block], schema=self.schema)
        )

    def close(self) -> None:
        self.file.close()


@contextmanager
def table_writer(path: Path, columns: tuple[str, ...], form: str) -> Iterator[TableWriter]:
    """A file of int32 columns, Parquet or CSV without a header, that appears when complete."""
    with whole(path) as temporary:
        make = _ParquetWriter if form == "parquet" else _CsvWriter
        file = writable(temporary)
        writer = make(file, columns)
        try:
            yield writer
        finally:
            writer.close()
            if file is not temporary:
                file.close()
