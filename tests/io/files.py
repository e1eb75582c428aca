"""What the tests of files share: streams from files and into them, under one way to run."""

from __future__ import annotations

import gc
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import xstream as xs

#: Ways to run that differ in what they do with a source's memory.
WAYS = [(scheduler, memory) for scheduler in ("df", "fifo") for memory in xs.MANAGER_NAMES]


def joined(segments: list[xs.SigSeg]) -> npt.NDArray[Any]:
    """The samples of segments that follow one another."""
    for before, after in itertools.pairwise(segments):
        assert before.stop == after.start
    return np.concatenate([np.asarray(segment) for segment in segments])


def read(source: Any, *way: Any, **options: Any) -> list[Any]:
    """The tuples of each stream of a source; nothing may be left in memory."""
    q = xs.Query()
    sinks = [stream.collect() for stream in q.sources(source)]
    run = q.run(*way, **options)
    return [run[sink] for sink in sinks]


def samples_of(source: Any, *way: Any) -> list[npt.NDArray[Any]]:
    """All samples of each column of a source, as fields or as streams."""
    columns: list[npt.NDArray[Any]] = []
    for stream in read(source, *way):
        rows = [row if isinstance(row, tuple) else (row,) for row in stream]
        columns += [joined([row[i] for row in rows]) for i in range(len(rows[0]))]
    return columns


def write(target: Any, *columns: npt.NDArray[Any], window: int = 1000, **source: Any) -> xs.Run:
    """Columns as one stream of segments into a file."""
    q = xs.Query()
    streams = [q.source(xs.io.array(column, window=window, **source)) for column in columns]
    stream = streams[0].zip(*streams[1:]) if len(streams) > 1 else streams[0]
    stream.write(target)
    return q.run()


def leaves_nothing(declare: Any, *way: Any) -> None:
    """A run of a query gives all its memory back."""
    q = xs.Query()
    declare(q)
    run = q.run(*way)
    manager = run.manager
    del run
    gc.collect(0)
    assert manager.stats().live_blocks == 0
    assert manager.stats().live_bytes == 0


def part(path: Path) -> Path:
    return path.with_name(path.name + ".part")
