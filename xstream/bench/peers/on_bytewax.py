"""bytewax: a dataflow of windows in one worker."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import bytewax.operators as op
import numpy as np
from _job import Job
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

BATCH = 64


class Windows(DynamicSource[Any]):
    def __init__(self, windows: list[Any], times: int) -> None:
        self.windows, self.times = windows, times

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Any:
        return Part(self.windows, self.times)


class Part(StatelessSourcePartition[Any]):
    def __init__(self, windows: list[Any], times: int) -> None:
        self.batches = [windows[i : i + BATCH] for i in range(0, len(windows), BATCH)]
        self.left = times * len(self.batches)

    def next_batch(self) -> Any:
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.batches[-1 - self.left % len(self.batches)]


class Out(DynamicSink[Any]):
    def __init__(self, take: Any) -> None:
        self.take = take

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Any:
        return OutPart(self.take)


class OutPart(StatelessSinkPartition[Any]):
    def __init__(self, take: Any) -> None:
        self.take = take

    def write_batch(self, items: list[Any]) -> None:
        self.take(items)


def measure(job: Job, name: str, build: Any) -> None:
    windows = list(job.windows)

    def run(times: int, take: Any) -> None:
        flow = Dataflow("peer")
        stream = op.input("in", flow, Windows(windows, times))
        op.output("out", build(stream), Out(take))
        run_main(flow)

    def check() -> Any:
        out: list[Any] = []
        run(1, out.extend)
        return np.concatenate(out)

    def work(times: int) -> None:
        count = [0]

        def add(items: list[Any]) -> None:
            count[0] += len(items)

        run(times, add)
        assert count[0]

    job.measure(name, check, work)


def main() -> None:
    job = Job()
    if job.benchmark == "passchain":

        def chain(stream: Any) -> Any:
            for i in range(job.operators):
                stream = op.map(f"pass{i}", stream, lambda window: window)
            return stream

        measure(job, f"{job.operators} maps", chain)
    else:
        for name, (louder, lower) in job.tests().items():
            measure(
                job, f"filters by {name}",
                lambda s, a=louder, b=lower: op.filter("b", op.filter("a", s, a), b),
            )  # fmt: skip
    job.answer(version("bytewax"))


if __name__ == "__main__":
    main()
