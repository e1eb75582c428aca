"""bytewax: windows of event time by its own operators, with one key for the whole stream.

The query is one of xstream's language; the content of a window is collected and then evaluated.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as windowing
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

from yabench.engines.faulty_adapter import answer

#: Items that arrive later than this after those before them are lost; results wait for it.
PATIENCE = timedelta(milliseconds=500)
START = datetime(2000, 1, 1, tzinfo=UTC)


class Lines(StatelessSourcePartition[Any]):
    """Items from standard input."""

    def next_batch(self) -> list[Any]:
        """Return the next item."""
        line = sys.stdin.readline()
        if not line:
            raise StopIteration
        return [json.loads(line)]


class Input(DynamicSource[Any]):
    """Standard input, read by one worker."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Lines:
        """Return the reader."""
        return Lines()


class Printer(StatelessSinkPartition[Any]):
    """Writes results to standard output."""

    def write_batch(self, items: list[Any]) -> None:
        """Write results."""
        for item in items:
            print(item, flush=True)


class Output(DynamicSink[Any]):
    """Standard output."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Printer:
        """Return the writer."""
        return Printer()


def main() -> None:
    """Build the dataflow of a task and run it."""
    with open(sys.argv[-1], encoding="utf-8") as file:
        task = json.load(file)
    size, slide = (timedelta(milliseconds=task[key]) for key in ("size_ms", "slide_ms"))
    flow = Dataflow("yabench")
    items = op.key_on("key", op.input("in", flow, Input()), lambda item: "all")
    clock = windowing.EventClock(
        ts_getter=lambda item: START + timedelta(milliseconds=item["time"]),
        wait_for_system_duration=PATIENCE,
    )
    # Windows are aligned so that the first one ends after one slide.
    windower = windowing.SlidingWindower(length=size, offset=slide, align_to=START + slide - size)
    windows = windowing.collect_window("window", items, clock, windower)

    def result(found: Any) -> str:
        _, (number, content) = found
        end = (number + 1) * task["slide_ms"]
        return json.dumps({"timestamp": end, "bindings": answer(task["query"], content)})

    op.output("out", op.map("answer", windows.down, result), Output())
    print('{"ready": true}', flush=True)
    run_main(flow)


main()
