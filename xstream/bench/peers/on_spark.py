"""Spark in local mode: its own aggregates, and functions over Arrow batches."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from _job import Job

#: Passes per job; starting a job and its workers takes seconds.
PASSES = 4
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def session() -> Any:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def measure(job: Job, name: str, query: Any, frames: Any, samples_out: Any) -> None:
    """Check one pass of `query` over a frame, then time many passes in one job."""
    once, many = (query(frame) for frame in frames)

    def work(times: int) -> None:
        for _ in range(times):
            many.write.format("noop").mode("overwrite").save()

    job.measure(
        name, lambda: samples_out(once.toArrow().sort_by("at")), work, most=4, passes=PASSES
    )


def cached(spark: Any, table: pa.Table) -> Any:
    frame = spark.createDataFrame(table).cache()
    frame.count()
    return frame


def sample_rows(job: Job, passes: int) -> pa.Table:
    count, windows = len(job.samples) * passes, len(job.windows) * passes
    return pa.table({
        "at": np.arange(count),
        "w": np.repeat(np.arange(windows), job.window),
        "value": np.tile(job.samples, passes),
    })  # fmt: skip


def window_rows(job: Job, passes: int) -> pa.Table:
    """Return a frame with an array per window, so that a batch is one run of samples."""
    windows = len(job.windows) * passes
    edges = np.arange(windows + 1, dtype=np.int32) * job.window
    arrays = pa.ListArray.from_arrays(edges, pa.array(np.tile(job.samples, passes)))
    return pa.table({"at": np.arange(windows), "value": arrays})


def kernel_filter(job: Job) -> Any:
    width, alpha = job.window, job.alpha
    beta = job.beta if job.benchmark == "statfilter" else float("inf")
    path, folder = str(job._kernels), os.path.dirname(os.path.abspath(__file__))

    def filtered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if folder not in sys.path:
            sys.path.insert(0, folder)
        from _job import load_kernels

        kernels = load_kernels(path)
        for batch in batches:
            lists = batch.column(1)
            values = lists.flatten().to_numpy(zero_copy_only=True)
            starts = np.zeros(len(lists), np.int64)
            count = kernels.statfilter(values, width, alpha, beta, starts)
            yield batch.take(pa.array(starts[:count] // width))

    return lambda frame: frame.mapInArrow(filtered, frame.schema)


def main() -> None:
    job = Job()
    job._trials = min(job._trials, 3)
    spark = session()
    windows = [cached(spark, window_rows(job, passes)) for passes in (1, PASSES)]

    def values(table: pa.Table) -> Any:
        return table["value"].to_numpy()

    def arrays(table: pa.Table) -> Any:
        return table["value"].combine_chunks().flatten().to_numpy()

    if job.benchmark == "passchain":

        def chain(frame: Any) -> Any:
            for _ in range(job.operators):
                frame = frame.mapInArrow(same, frame.schema)
            return frame

        measure(job, f"{job.operators} mapInArrow of windows", chain, windows, arrays)
    else:
        from pyspark.sql import functions as f

        def aggregates(frame: Any) -> Any:
            value = f.col("value").cast("double")
            loud = frame.groupBy("w").agg(f.stddev_pop(value).alias("s"), f.avg(value).alias("m"))
            loud = loud.where(f.col("s") > job.alpha)
            if job.benchmark == "statfilter":
                loud = loud.where(f.col("m") < job.beta)
            return frame.join(loud.select("w"), "w", "leftsemi")

        samples = [cached(spark, sample_rows(job, passes)) for passes in (1, PASSES)]
        measure(job, "its own aggregates", aggregates, samples, values)
        measure(job, "mapInArrow with our numba kernels", kernel_filter(job), windows, arrays)
    job.answer(spark.version)
    spark.stop()


if __name__ == "__main__":
    main()
