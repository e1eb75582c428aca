"""Flat files as Parquet that Spark can divide, read block by block with pyarrow.

A block without anything unusual is parsed at once. Any other block is parsed line by line, by the
letter of docs/linear-road-rules.md, section 1.3: a field is `-?[0-9]+`, and a CR counts as part of
the end of a line only before a newline.
"""

from __future__ import annotations

import io
import lzma
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from linearroad.files import whole
from linearroad.storage import writable
from xstream.errors import InputError

__all__ = [
    "FILE_BITS",
    "PLACE",
    "blocks_of",
    "lines_of",
    "open_flat",
    "split_lines",
    "write_answers",
    "write_rows",
    "written",
]

BLOCK_BYTES = 16 << 20
PLACE = "place"  # the number of a row in its file, and from this bit on that of its file
FILE_BITS = 54
_ORDINARY = b"0123456789,-\n"
_INTEGER = re.compile(rb"-?[0-9]+")
_INT32 = np.iinfo(np.int32)


@contextmanager
def written(target: Path) -> Iterator[Any]:
    """What pyarrow writes to; the file has its name when it is complete."""
    with whole(target) as temporary:
        file = writable(temporary)
        try:
            yield file
        finally:
            if file is not temporary:
                file.close()


def open_flat(path: Path) -> BinaryIO:
    """A flat file, plain or compressed."""
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path.open("rb")))
    compression = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    if compression is None:
        return path.open("rb")
    return cast(BinaryIO, pa.input_stream(path.open("rb"), compression=compression))


def blocks_of(path: Path) -> Iterator[bytes]:
    """The file in blocks of whole lines; the last line may lack its newline."""
    rest = b""
    try:
        with open_flat(path) as file:
            while block := file.read(BLOCK_BYTES):
                block = rest + block
                end = block.rfind(b"\n") + 1
                rest = block[end:]
                if end:
                    yield block[:end]
    except (EOFError, OSError, lzma.LZMAError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read to its end: {error}") from error
    if rest:
        yield rest


def lines_of(path: Path) -> Iterator[list[bytes]]:
    """Blocks of lines without their ends."""
    for block in blocks_of(path):
        lines = block.split(b"\n")
        ended = lines.pop() == b""
        stripped = [line.removesuffix(b"\r") for line in lines]
        yield stripped if ended else [*stripped, block[block.rfind(b"\n") + 1 :]]


def integer(field: bytes) -> int | None:
    """The int32 that a field spells, or None."""
    if not _INTEGER.fullmatch(field) or len(field.lstrip(b"-0")) > 10:
        return None
    value = int(field)
    return value if _INT32.min <= value <= _INT32.max else None


def _line_by_line(block: bytes, width: int) -> list[Any]:
    """Columns of a block with unusual lines; a line that is no row is null in every column."""
    nothing = (None,) * width
    lines = block.split(b"\n")
    last = lines.pop()
    fields = [line.removesuffix(b"\r").split(b",") for line in lines]
    fields += [last.split(b",")] if last else []
    rows = []
    for each in fields:
        values = tuple(map(integer, each)) if len(each) == width else nothing
        rows.append(nothing if None in values else values)
    columns = zip(*rows, strict=True) if rows else [()] * width
    return [pa.array(column, pa.int32()) for column in columns]


def _at_once(block: bytes, names: tuple[str, ...]) -> list[Any] | None:
    """Columns of a block, or None if it has anything but rows of integers."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if block.translate(None, _ORDINARY):
        return None
    try:
        table = pacsv.read_csv(
            io.BytesIO(block),
            pacsv.ReadOptions(column_names=list(names), block_size=len(block) + 1),
            pacsv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            pacsv.ConvertOptions(column_types=dict.fromkeys(names, pa.int32())),
        )
    except pa.ArrowInvalid:
        return None
    columns = [column.combine_chunks() for column in table.columns]
    return None if any(column.null_count for column in columns) else columns


def write_rows(path: Path, target: Path, names: tuple[str, ...]) -> None:
    """Write the rows of a flat file as Parquet: int32 columns, and their place in the file."""
    schema = pa.schema([*((name, pa.int32()) for name in names), (PLACE, pa.int64())])
    place = 0
    with (
        written(target) as file,
        pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=False) as writer,
    ):
        for block in blocks_of(path):
            columns = _at_once(block, names)
            if columns is None:
                columns = _line_by_line(block, len(names))
            many = len(columns[0])
            places = pa.array(np.arange(place, place + many, dtype=np.int64))
            place += many
            writer.write_table(pa.table([*columns, places], schema=schema))


def as_strings(lines: list[bytes]) -> Any:
    """Lines as Arrow strings; bytes that are not ASCII are shown as question marks."""
    return pa.array([line.decode("ascii", "replace") for line in lines], pa.string())


def split_lines(block: bytes) -> Any:
    """The lines of a block as an Arrow string array without their ends."""
    if b"\r" in block or not block.isascii():
        lines = block.split(b"\n")
        last = lines.pop()
        return as_strings(
            [*(line.removesuffix(b"\r") for line in lines), *([last] if last else [])]
        )
    ended = block if block.endswith(b"\n") else block + b"\n"
    data = np.frombuffer(ended, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    # Lines follow each other without their newlines.
    offsets = np.concatenate(([0], ends - np.arange(len(ends)))).astype(np.int32)
    text = data[data != ord("\n")]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text))]
    return pa.StringArray.from_buffers(len(ends), buffers[1], buffers[2])


def write_answers(
    path: Path, target: Path, pattern: str, widths: dict[int, int], kind_field: int, place: int = 0
) -> None:
    """Write the lines of a flat file of answers as Parquet: their fields as text.

    `pattern` is what an answer looks like, `widths` the number of fields by type, and `kind_field`
    the field with the type. Columns: `kind` (null for a line that is no answer), `f0` to `f5`,
    `line` (only of such a line) and the place.
    """
    most = max(widths.values())
    texts = [(f"f{i}", pa.string()) for i in range(most)]
    schema = pa.schema([("kind", pa.int8()), *texts, ("line", pa.string()), (PLACE, pa.int64())])
    with (
        written(target) as file,
        pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=False) as writer,
    ):
        for block in blocks_of(path):
            lines = split_lines(block)
            places = pa.array(np.arange(place, place + len(lines), dtype=np.int64))
            place += len(lines)
            writer.write_table(
                pa.table([*_fields(lines, pattern, widths, kind_field, most), places],
                         schema=schema)
            )  # fmt: skip


def _fields(
    lines: Any, pattern: str, widths: dict[int, int], kind_field: int, most: int
) -> list[Any]:
    looks = pc.match_substring_regex(lines, pattern)
    split = pc.split_pattern(pc.if_else(looks, lines, ""), ",")
    length = np.asarray(pc.list_value_length(split))
    begins = np.asarray(split.offsets)[:-1].astype(np.int64)
    flat = split.flatten()

    def field(number: int) -> Any:
        at = pa.array(begins + number, pa.int64(), mask=length <= number)
        return flat.take(at)

    kind = pc.cast(pc.if_else(looks, field(kind_field), None), pa.int8())
    known = kind.to_numpy(zero_copy_only=False)
    wanted = np.zeros(len(lines), np.int64)
    for number, width in widths.items():
        wanted[known == number] = width
    whole = np.asarray(looks) & (length == wanted)
    answer = pa.array(whole)
    fields = [pc.if_else(answer, field(i), None) for i in range(most)]
    return [pc.if_else(answer, kind, None), *fields, pc.if_else(answer, None, lines)]
