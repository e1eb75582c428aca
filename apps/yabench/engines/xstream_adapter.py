"""xstream: time windows, aggregates and self-joins over columns of records.

Queries: `select sensor, obs where value > T`, `average of value [by sensor] where value > T`, and
`pairs of sensor where value1 > value and value > T`. Arrow batches enter the engine as segments,
one for each column; RDF in the form of triples is converted on the way in. Results leave as Arrow.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import xstream as xs
from yabench.engines.window_kernels import CLOSE, NEW, WHOLE, averaged, paired, selected

KINDS = {"time": "int64", "observation": "int64", "station": "int64", "value": "float64"}
ITEMS = {name: xs.Segment(kind) for name, kind in KINDS.items()}
#: An observation as a block of triples on one line, with its time at the end.
_BLOCK = re.compile(
    rb'<\S+_(?P<observation>\d+)> .*?System_(?P<station>\d+)>.*?floatValue> "(?P<value>[^"]+)"'
    rb'.* "(?P<time>\d+)"\s*'
)


def batches(manager: xs.MemoryManager) -> Iterator[tuple[xs.SigSeg, ...]]:
    """Yield the columns of each batch; the engine is ready by now."""
    print('{"ready": true}', flush=True)
    if sys.argv[1] == "--ntriples":
        read: Iterator[list[Any]] = _converted()
    else:
        stream = pa.ipc.open_stream(sys.stdin.buffer)
        read = ([column.to_numpy() for column in batch.columns] for batch in stream)
    for columns in read:
        yield tuple(xs.SigSeg(column, memory=manager) for column in columns)


def _converted() -> Iterator[list[Any]]:
    """Convert observations in the form of triples into columns, as many as have arrived."""
    rest = b""
    while piece := sys.stdin.buffer.read1(1 << 20):  # type: ignore[union-attr]
        *lines, rest = (rest + piece).split(b"\n")
        found = [_BLOCK.fullmatch(line) for line in lines]
        if not all(found):
            bad = lines[found.index(None)]
            sys.exit(f"this is not an observation: {bad[:200].decode(errors='replace')}")
        if found:
            yield [
                np.array([match[name] for match in found if match], "S32").astype(kind)
                for name, kind in KINDS.items()
            ]


def write(end: int, columns: dict[str, Any]) -> None:
    """Write a result: a line with its time, and the columns as an Arrow stream."""
    batch = pa.RecordBatch.from_pydict(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    body = sink.getvalue()
    head = json.dumps({"timestamp": end, "arrow_bytes": body.size})
    output = sys.stdout.buffer
    output.write(head.encode() + b"\n")
    output.write(body)
    output.flush()


def connect(src: Any, task: dict[str, Any]) -> None:
    """Connect the operators of a query and the sink that writes its results."""
    words = task["query"].split()
    size, slide, level = task["size_ms"], task["slide_ms"], float(words[-1])
    policy = CLOSE
    if task["policy"] == "content-change":
        policy = NEW if task["only_new"] else WHOLE
    if words[0] == "average":
        by_sensor = words[3:5] == ["by", "sensor"]
        names: tuple[str, ...] = ("sensor", "avg")
        if policy == CLOSE and not by_sensor:
            _average(src, size, slide, level)
            return
        found = src.iterate(averaged, level, by_sensor, size, slide, policy)
        names = names if by_sensor else ("", "avg")
    else:
        kernel, names = {
            "select": (selected, ("sensor", "obs")),
            "pairs": (paired, ("sensor", "ob1", "value1", "obs")),
        }[words[0]]
        found = src.iterate(kernel, level, size, slide, policy)

    def report(end: int, *columns: xs.SigSeg) -> None:
        named = zip(names, columns, strict=True)
        write(end, {name: np.asarray(column) for name, column in named if name})

    found.sink(report)


@xs.kernel(each=True, out={"time": "int64", "hot": "int64", "hot_value": "float64"})
def counted(time, value, level):  # type: ignore[no-untyped-def]
    """A value if it is above a level, else zero, and how often that is."""
    return (time, 1, value) if value > level else (time, 0, 0.0)


def _average(src: Any, size: int, slide: int, level: float) -> None:
    """Report the average of the values above a level by the engine's own aggregates."""
    values = {"n": ("sum", "hot"), "total": ("sum", "hot_value")}
    columns = src.map(counted, level)

    def report(start: int, end: int, count: int, total: float) -> None:
        write(end, {"avg": [total / count if count else 0.0]})

    columns.aggregate(values, window=size, step=slide, time="time", empty=True).sink(report)


def main() -> None:
    """Run the query of a task until the input ends."""
    with open(sys.argv[-1], encoding="utf-8") as file:
        task = json.load(file)
    words = task["query"].split()
    if not words or words[0] not in ("select", "average", "pairs"):
        sys.exit(f"xstream answers select, average and pairs queries, not {task['query']!r}")
    if task["policy"] == "periodic":
        sys.exit("xstream reports when a window closes or its content changes, not periodically")
    with xs.memory_manager("refcount-lazy") as manager:
        query = xs.Query()
        connect(query.source(xs.io.iterable(lambda: batches(manager), out=ITEMS)), task)
        query.run(tuple_burst=1, memory=manager)


if __name__ == "__main__":
    main()
