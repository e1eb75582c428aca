"""Spark SQL over data frames: the language in which the rules are written down here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from linearroad.scratch import scratch
from linearroad.spark import attempt, observed_count
from xstream.errors import XStreamError

__all__ = ["Frame", "Workshop", "workshop"]

#: A pyspark DataFrame; pyspark itself is imported by `linearroad.spark` alone.
Frame = Any

# Rules are written for the usual meaning of a failed cast and of an index: an error, not a null.
SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "48m",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    # Not lz4_raw: parquet-java cannot read back every page of it that it wrote (next setting).
    "spark.sql.parquet.compression.codec": "zstd",
    # Row groups are not skipped by looking into dictionaries: parquet-java (issue 3478) reads a
    # dictionary of more than 8 KiB for that in pieces, of which LZ4 cannot be unpacked. Other
    # systems' answers and inputs may be so compressed; ours are, by pyarrow.
    "parquet.filter.dictionary.enabled": "false",
    "parquet.page.verify-checksum.enabled": "true",
    "spark.sql.files.maxPartitionBytes": "32m",
}
LEAST_PARTITIONS = 4
BYTES_PER_PARTITION = 5 << 20  # of compressed input


class Workshop:
    """A session, and a folder for tables that are only needed meanwhile."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self._kept = 0

    def table(self, text: str, **frames: Frame) -> Frame:
        """The table that a query defines; `{name}` stands for the frame of that name."""
        return self.spark.sql(text, **frames)

    def keep(self, frame: Frame) -> Frame:
        """A table worked out now and read back from disk, so that nobody works it out again.

        On disk, not in Spark's cache: that finds a table again only by the shape of its plan, and
        a plan that went through SQL text does not always have the same shape twice.
        """
        self._kept += 1
        place = self.folder / f"table-{self._kept}"
        counted, count = observed_count(frame)
        attempt(lambda: counted.write.parquet(str(place)))
        meant, written = count(), rows_written(place)
        if written != meant:
            raise XStreamError(
                f"Spark wrote {written:,} of {meant:,} rows of an intermediate table: "
                "nothing can be said about the answers"
            )
        return self.spark.read.schema(frame.schema).parquet(str(place))

    def rows(self, frame: Frame) -> list[dict[str, Any]]:
        """A small table, here."""
        return [row.asDict(recursive=True) for row in attempt(frame.collect)]


def rows_written(folder: Path) -> int:
    """The rows of a table that Spark wrote, as its files say."""
    return sum(pq.read_metadata(part).num_rows for part in folder.glob("part-*.parquet"))


@contextmanager
def workshop(spark: Any, beside: Path, input_bytes: int) -> Iterator[Workshop]:
    """A workshop below `beside`, where all workers can reach it; nothing of it stays."""
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
        with suppress(Exception):  # Spark may be what failed
            for name, old in before.items():
                spark.conf.unset(name) if old is None else spark.conf.set(name, old)
