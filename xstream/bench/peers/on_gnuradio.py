"""GNU Radio with the Python of the system: chains of its blocks, and filter blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from _job import Job
from gnuradio import blocks, gr


class Windows(gr.basic_block):
    """Passes the vectors (windows) for which a predicate is true."""

    def __init__(self, width: int, test: Any) -> None:
        gr.basic_block.__init__(
            self, "windows", in_sig=[(np.float32, width)], out_sig=[(np.float32, width)]
        )
        self.test = test

    def general_work(self, input_items: Any, output_items: Any) -> int:
        given, out = input_items[0], output_items[0]
        count = min(len(given), len(out))
        produced = 0
        for i in range(count):
            if self.test(given[i]):
                out[produced] = given[i]
                produced += 1
        self.consume(0, count)
        return produced


def measure(job: Job, name: str, width: int, stages: Any) -> None:
    """Build a flow graph; `width` 1 is a stream of samples, more is a stream of vectors."""
    size = gr.sizeof_float * width
    data = [float(sample) for sample in job.samples]

    def flow(times: int, sink: Any) -> None:
        top = gr.top_block()
        source = blocks.vector_source_f(data, repeat=True, vlen=width)
        head = blocks.head(size, len(data) // width * times)
        chain = [
            source,
            head,
            *stages(),
            sink,
        ]  # GNU Radio does not keep references to Python blocks
        top.connect(*chain)
        top.run()
        del chain

    def check() -> Any:
        sink = blocks.vector_sink_f(width)
        flow(1, sink)
        return np.array(sink.data(), np.float32)

    def work(times: int) -> None:
        flow(times, blocks.null_sink(size))

    # Starting the threads takes milliseconds, so runs must be long.
    job.measure(name, check, work)


def main() -> None:
    job = Job()
    job._seconds = max(job._seconds, 0.5)
    if job.benchmark == "passchain":
        for width, name in ((1, "samples"), (job.window, "windows as vectors")):
            size = gr.sizeof_float * width
            measure(
                job, f"{job.operators} copy blocks, {name}", width,
                lambda size=size: [blocks.copy(size) for _ in range(job.operators)],
            )  # fmt: skip
    elif job.benchmark == "elementwise":
        measure(
            job, f"{job.operators} multiply_const_ff blocks", 1,
            lambda: [blocks.multiply_const_ff(job.factor) for _ in range(job.operators)],
        )  # fmt: skip
    else:
        for name, (louder, lower) in job.tests().items():
            measure(
                job, f"two Python blocks by {name}", job.window,
                lambda a=louder, b=lower: [Windows(job.window, a), Windows(job.window, b)],
            )  # fmt: skip
    job.answer(gr.version())


if __name__ == "__main__":
    main()
