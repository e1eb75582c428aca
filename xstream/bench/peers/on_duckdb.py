"""duckdb: SQL over a table in memory, and our kernels over its arrays."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from _job import Job


def measure(job: Job, name: str, base: Any, sql: str) -> None:
    def work(times: int) -> None:
        for _ in range(times):
            base.sql(sql).to_arrow_table()

    job.measure(name, lambda: base.sql(sql).to_arrow_table()["value"].to_numpy(), work)


def main() -> None:
    job = Job()
    base = duckdb.connect()
    table = pa.table({
        "number": np.arange(len(job.samples)),
        "w": np.repeat(np.arange(len(job.windows)), job.window),
        "value": job.samples,
    })  # fmt: skip
    base.register("loaded", table)
    base.execute("create table samples as select * from loaded")
    if job.benchmark == "passchain":
        # Its optimiser merges the selects into one, as the paper suspects of a commercial engine.
        sql = "select value from samples"
        for i in range(job.operators):
            sql = f"select value from ({sql}) as pass{i}"
        measure(job, f"{job.operators} nested selects, merged", base, sql)
    else:
        lower = f"and avg(value::double) < {job.beta}" if job.benchmark == "statfilter" else ""
        measure(
            job, "SQL", base,
            "select value from samples where w in (select w from samples group by w "
            f"having stddev_pop(value::double) > {job.alpha} {lower}) order by number",
        )  # fmt: skip
        kernels = job.kernels()
        if kernels is not None:
            with_kernels(job, base, kernels)
    job.answer(duckdb.__version__)


def with_kernels(job: Job, base: Any, kernels: Any) -> None:
    beta = job.beta if job.benchmark == "statfilter" else np.inf
    starts = np.zeros(len(job.windows), np.int64)

    def once() -> Any:
        values = base.execute("select value from samples").fetchnumpy()["value"]
        values = np.ascontiguousarray(values)
        count = kernels.statfilter(values, job.window, job.alpha, beta, starts)
        return values.reshape(-1, job.window)[starts[:count] // job.window].ravel()

    def work(times: int) -> None:
        for _ in range(times):
            once()

    job.measure("our numba kernels over its arrays", once, work)


if __name__ == "__main__":
    main()
