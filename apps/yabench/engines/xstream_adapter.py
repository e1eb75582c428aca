"""xstream: its windows, aggregates and joins over records.

Queries: `select sensor, obs where value > T`, `average of value where value > T`, and `pairs of
sensor where value1 > value and value > T`. RDF in the form of triples is converted on the way in.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

import xstream as xs

ITEM = {"time": int, "observation": int, "station": int, "value": float}
Write = Callable[[int, dict[str, list[Any]]], None]


@xs.kernel
def above(value, level):  # type: ignore[no-untyped-def]
    """Whether a value is above a level."""
    return value > level


@xs.kernel(out={"time": int, "hot": int, "hot_value": float})
def counted(time, value, level):  # type: ignore[no-untyped-def]
    """A value if it is above a level, else zero, and how often that is."""
    if value > level:
        return time, 1, value
    return time, 0, 0.0


def items() -> Iterator[tuple[int, int, int, float]]:
    """Yield the records of Arrow batches, or of blocks of triples; the engine is ready by now."""
    print('{"ready": true}', flush=True)
    if sys.argv[1] == "--ntriples":
        yield from _converted()
        return
    for batch in pa.ipc.open_stream(sys.stdin.buffer):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _converted() -> Iterator[tuple[int, int, int, float]]:
    """Convert observations, each a block of triples on one line, into records."""
    station, observation = re.compile(r"System_(\d+)>"), re.compile(r"^<\S+_(\d+)>")
    value, time = re.compile(r'floatValue> "([^"]+)"'), re.compile(r'"(\d+)"\s*$')
    for line in sys.stdin:
        found = [pattern.search(line) for pattern in (time, observation, station, value)]
        at, what, who, much = (match[1] if match else "0" for match in found)
        yield int(at), int(what), int(who), float(much)


class Contents:
    """Bindings of the last windows, in order of the time at which they are complete."""

    def __init__(self, names: tuple[str, ...], size_ms: int, write: Write) -> None:
        self.names, self.size_ms, self.write = names, size_ms, write
        self.last: list[int] = []
        self.rows: list[tuple[int, tuple[Any, ...]]] = []

    def add(self, first: int, last: int, *row: Any) -> None:
        """Add a binding whose items came from `first` to `last`."""
        self.last.append(last)
        self.rows.append((first, row))

    def close(self, start: int, end: int, count: int) -> None:
        """Report a window, and drop what no later window has."""
        inside = self.rows[: bisect_left(self.last, end)]
        found = [row for first, row in inside if first >= start]
        columns = zip(*found, strict=True) if found else ([] for _ in self.names)
        self.write(end, dict(zip(self.names, map(list, columns), strict=True)))
        gone = bisect_left(self.last, end - self.size_ms)
        del self.last[:gone], self.rows[:gone]


def write(end: int, columns: dict[str, list[Any]]) -> None:
    """Write a result."""
    print(json.dumps({"timestamp": end, "columns": columns}), flush=True)


def select(src: Any, task: dict[str, Any], level: float) -> None:
    """Report sensors and observations above a level."""
    hot = src.filter(above, level)
    if task["policy"] == "content-change":
        hot.sink(lambda time, obs, sensor, value: write(time, {"sensor": [sensor], "obs": [obs]}))
        return
    contents = Contents(("sensor", "obs"), task["size_ms"], write)
    hot.sink(lambda time, obs, sensor, value: contents.add(time, time, sensor, obs))
    closing(src, task).sink(contents.close)


def pairs(src: Any, task: dict[str, Any], level: float) -> None:
    """Report two observations of a sensor, the first above the second."""
    size, slide = task["size_ms"], task["slide_ms"]
    change = task["policy"] == "content-change"
    contents = Contents(("sensor", "ob1", "value1", "obs"), size, write)
    keyed = src.filter(above, level).select("station", "time", "observation", "value")

    def found(station: int, *pair: Any) -> None:
        time1, ob1, value1, time, obs, value = pair
        first, last = min(time1, time), max(time1, time)
        if not value1 > value or last - first >= size:
            return
        if not change:
            contents.add(first, last, station, ob1, value1, obs)
        elif first >= (last // slide + 1) * slide - size:
            row = {"sensor": [station], "ob1": [ob1], "value1": [value1], "obs": [obs]}
            write(last, row)

    keyed.join(keyed, on="station").sink(found)
    if not change:
        closing(src, task).sink(contents.close)


def average(src: Any, task: dict[str, Any], level: float) -> None:
    """Report the average of the values above a level."""
    values = {"n": ("sum", "hot"), "total": ("sum", "hot_value")}
    window = {"window": task["size_ms"], "step": task["slide_ms"], "time": "time"}
    hot = src.map(counted, level)

    def report(start: int, end: int, count: int, total: float) -> None:
        write(end, {"avg": [total / count if count else 0.0]})

    hot.aggregate(values, empty=True, **window).sink(report)


def closing(src: Any, task: dict[str, Any]) -> Any:
    """Return the stream of windows that close: start, end and number of items."""
    size, slide = task["size_ms"], task["slide_ms"]
    return src.aggregate({"n": "count"}, window=size, step=slide, time="time", empty=True)


KINDS = {"select": select, "average": average, "pairs": pairs}


def main() -> None:
    """Run the query of a task until the input ends."""
    with open(sys.argv[-1], encoding="utf-8") as file:
        task = json.load(file)
    words = task["query"].split()
    if not words or words[0] not in KINDS or (words[0] == "average" and task["only_new"]):
        sys.exit(f"xstream answers {', '.join(KINDS)} queries, not {task['query']!r}")
    query = xs.Query()
    src = query.source(xs.io.iterable(items, out=ITEM))
    KINDS[words[0]](src, task, float(words[-1]))
    query.run(tuple_burst=1)


if __name__ == "__main__":
    main()
