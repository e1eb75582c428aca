"""polars: a lazy query with its own aggregates, and our kernels over its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from _job import Job

#: Functions get whole batches.
APART: Any = {"predicate_pushdown": False, "projection_pushdown": False, "slice_pushdown": False}


def measure(job: Job, name: str, query: Any) -> None:
    numbers = np.repeat(np.arange(len(job.windows)), job.window)
    frame = pl.DataFrame({"window": numbers, "value": job.samples}).lazy()
    lazy = query(frame)

    def work(times: int) -> None:
        for _ in range(times):
            lazy.collect()

    job.measure(name, lambda: lazy.collect()["value"].to_numpy(), work)


def passing(frame: Any) -> Any:
    return frame


def own_aggregates(job: Job) -> Any:
    value = pl.col("value").cast(pl.Float64)

    def query(frame: Any) -> Any:
        loud = frame.group_by("window").agg(value.std(ddof=0).alias("s"), value.mean().alias("m"))
        keep = loud.filter(pl.col("s") > job.alpha)
        if job.benchmark == "statfilter":
            keep = keep.filter(pl.col("m") < job.beta)
        return frame.join(keep, on="window", how="semi", maintain_order="left")

    return query


def with_kernels(job: Job, kernels: Any) -> Any:
    beta = job.beta if job.benchmark == "statfilter" else np.inf
    starts = np.zeros(len(job.windows), np.int64)

    def filtered(frame: Any) -> Any:
        values = frame["value"].to_numpy()
        count = kernels.statfilter(values, job.window, job.alpha, beta, starts)
        kept = values.reshape(-1, job.window)[starts[:count] // job.window]
        return pl.DataFrame({"value": kept.ravel()})

    return lambda frame: frame.select("value").map_batches(
        filtered, schema={"value": pl.Float32}, **APART
    )


def main() -> None:
    job = Job()
    if job.benchmark == "passchain":

        def chain(frame: Any) -> Any:
            for _ in range(job.operators):
                frame = frame.map_batches(passing, **APART)
            return frame

        measure(job, f"{job.operators} map_batches over all samples", chain)
    else:
        measure(job, "its own aggregates", own_aggregates(job))
        kernels = job.kernels()
        if kernels is not None:
            measure(job, "our numba kernels", with_kernels(job, kernels))
    job.answer(pl.__version__)


if __name__ == "__main__":
    main()
