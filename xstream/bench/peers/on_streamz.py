"""streamz: windows are emitted and passed through callables."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamz
from _job import Job


def measure(job: Job, name: str, build: Any) -> None:
    windows = list(job.windows)

    def check() -> Any:
        out: list[Any] = []
        source = streamz.Stream()
        build(source).sink(out.append)
        for window in windows:
            source.emit(window)
        return np.concatenate(out)

    def work(times: int) -> None:
        count = [0]

        def add(window: Any) -> None:
            count[0] += len(window)

        source = streamz.Stream()
        build(source).sink(add)
        for _ in range(times):
            for window in windows:
                source.emit(window)
        assert count[0]

    job.measure(name, check, work)


def main() -> None:
    job = Job()
    if job.benchmark == "passchain":

        def chain(stream: Any) -> Any:
            for _ in range(job.operators):
                stream = stream.map(lambda window: window)
            return stream

        measure(job, f"{job.operators} maps", chain)
    else:
        for name, (louder, lower) in job.tests().items():
            measure(job, f"filters by {name}", lambda s, a=louder, b=lower: s.filter(a).filter(b))
    job.answer(streamz.__version__)


if __name__ == "__main__":
    main()
