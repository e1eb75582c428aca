"""Spark SQL over data frames; the rules of the validation are written in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from linearroad.scratch import scratch
from linearroad.spark import attempt, observed_count, run_tasks
from linearroad.storage import make_folder, readable, spark_uri
from linearroad.validation.flat import FILE_BITS
from xstream.errors import InputError, XStreamError

__all__ = ["Frame", "Workshop", "place_of", "require_columns", "workshop"]

#: A pyspark DataFrame; pyspark itself is imported by `linearroad.spark` alone.
Frame = Any

# The rules rely on ANSI mode: a failed cast or a wrong index is an error, not a null.
SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "48m",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    # Not lz4_raw: parquet-java cannot read back every page of it that it wrote (next setting).
    "spark.sql.parquet.compression.codec": "zstd",
    # Row groups are not skipped by their dictionaries: parquet-java (issue 3478) reads a
    # dictionary of more than 8 KiB in pieces for that, which LZ4 cannot decompress. Inputs
    # and answers of other systems may be compressed like that; ours are, by pyarrow.
    "parquet.filter.dictionary.enabled": "false",
    "parquet.page.verify-checksum.enabled": "true",
    "spark.sql.files.maxPartitionBytes": "32m",
}
LEAST_PARTITIONS = 4
BYTES_PER_PARTITION = 5 << 20  # of compressed input
PARTS_PER_TASK = 500
_NUMBERED = "([0-9]+)(/output)?[.]parquet$"


class Workshop:
    """A session, and a folder for temporary tables."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self._kept = 0
        #: The number of rows of the table that was kept last.
        self.rows_kept = 0

    def table(self, text: str, **frames: Frame) -> Frame:
        """The table that a query defines; `{name}` stands for the frame of that name."""
        return self.spark.sql(text, **frames)

    def keep(self, frame: Frame) -> Frame:
        """Compute a table now and read it back from disk, so that it is computed only once.

        Not in Spark's cache, which finds a table only by the shape of its plan. A plan that went
        through SQL text does not always have the same shape.
        """
        self._kept += 1
        place = self.folder / f"table-{self._kept}"
        counted, count = observed_count(frame)
        attempt(lambda: counted.write.parquet(spark_uri(place)))
        meant, written = count(), rows_written(self.spark, place)
        self.rows_kept = written
        if written != meant:
            raise XStreamError(
                f"Spark wrote {written:,} of {meant:,} rows of an intermediate table: "
                "nothing can be said about the answers"
            )
        return self.spark.read.schema(frame.schema).parquet(spark_uri(place))

    def rows(self, frame: Frame) -> list[dict[str, Any]]:
        """Collect a small table."""
        return [row.asDict(recursive=True) for row in attempt(frame.collect)]

    @property
    def slots(self) -> int:
        """The tasks that run at a time."""
        return max(int(self.spark.sparkContext.defaultParallelism), 1)

    def read(self, *paths: Path) -> Frame:
        """Parquet files, or all of those in a folder."""
        return self.spark.read.parquet(*map(spark_uri, paths))

    def subfolder(self, name: str) -> Path:
        """A folder for files that tasks write."""
        folder = self.folder / name
        make_folder(folder)
        return folder


def place_of(paths: Sequence[Path]) -> str:
    """What to add to the number of a row in its file, where there are several: that of the file,
    which is in its name or, for the answers of a group, in that of its folder."""
    if len(paths) == 1:
        return "0L"
    number = f"regexp_extract(_metadata.file_path, '{_NUMBERED}', 1)"
    return f"shiftleft(CAST({number} AS bigint), {FILE_BITS})"


def rows_written(spark: Any, folder: Path) -> int:
    """The number of rows in the files that Spark wrote; many are counted by tasks."""
    parts = sorted(folder.glob("part-*.parquet"))
    chunks = [parts[at : at + PARTS_PER_TASK] for at in range(0, len(parts), PARTS_PER_TASK)]
    if len(chunks) == 1:
        return _rows_of(chunks[0])
    return sum(run_tasks(spark, _rows_of, chunks))


def _rows_of(parts: Sequence[Path]) -> int:
    return sum(pq.read_metadata(readable(part)).num_rows for part in parts)


@contextmanager
def workshop(spark: Any, beside: Path, input_bytes: int) -> Iterator[Workshop]:
    """A workshop below `beside`, where all workers can reach it; it is removed at the end."""
    # A partition must fit into a core's share of the memory several times, whatever the input.
    partitions = max(LEAST_PARTITIONS, input_bytes // BYTES_PER_PARTITION)
    settings = {**SETTINGS, "spark.sql.shuffle.partitions": str(partitions)}
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        with scratch(beside, ".validation-") as room:
            yield Workshop(spark, room.folder)
    finally:
        with suppress(Exception):  # Spark itself may have failed
            for name, old in before.items():
                spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def require_columns(path: Path, needed: Sequence[str]) -> None:
    """Raise an error in one sentence unless a Parquet file has all of these columns."""
    try:
        names = pq.read_schema(readable(path)).names
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a Parquet file: {error}") from error
    for name in needed:
        if name not in names:
            raise InputError(f"{path} has no column {name!r}")
