"""Feeds a stream to the standard input of an engine, each item when it is due."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

from yabench.stream import triple_line
from yabench.weather import PROPERTY, Records, triples

__all__ = ["FORMS", "feed", "writes"]

FORMS = ("json", "ntriples", "arrow")


Writes = Iterator[tuple[int, Callable[[], Any]]]


def writes(records: Records, form: str, pipe: IO[bytes]) -> Writes:
    """Prepare the writes: each is a time and a function that writes all items of that time."""
    if form == "arrow":
        prepared = _arrow_writer(records, pipe)
        next(prepared)  # imports and builds what would delay the first items
        return prepared
    return _text_writer(records, form, pipe)


def feed(prepared: Writes, pipe: IO[bytes], start_s: float, speed: float) -> float:
    """Write all items when they are due; return the worst lateness, in ms of the stream."""
    late_s = 0.0
    for time_ms, send in prepared:
        due = start_s + time_ms / (1000 * speed)
        now = time.monotonic()
        if now < due:
            time.sleep(due - now)
        late_s = max(late_s, now - due)
        send()
        pipe.flush()
    pipe.close()
    return max(0.0, late_s * 1000 * speed)


def _text_writer(records: Records, form: str, pipe: IO[bytes]) -> Writes:
    line = _json_line if form == "json" else _triples_line
    for time_ms, rows in records.groups():
        text = "".join(
            line(time_ms, *row)
            for row in zip(
                records.station[rows].tolist(),
                records.observation[rows].tolist(),
                records.value[rows].tolist(),
                strict=True,
            )
        ).encode()
        yield time_ms, lambda text=text: pipe.write(text)  # type: ignore[misc]


def _json_line(time_ms: int, station: int, observation: int, value: float) -> str:
    item = {
        "time": time_ms, "observation": observation, "station": station, "property": PROPERTY,
        "value": value,
    }  # fmt: skip
    return json.dumps(item) + "\n"


def _triples_line(time_ms: int, station: int, observation: int, value: float) -> str:
    """Return one observation as a block of N-Triples on one line, with its time at the end."""
    block = (
        triple_line(triple, time_ms).rsplit(" ", 1)[0]
        for triple in triples(station, observation, value)
    )
    return f'{" . ".join(block)} . "{time_ms}"\n'


def _arrow_writer(records: Records, pipe: IO[bytes]) -> Writes:
    import pyarrow as pa

    columns = ("time", "observation", "station", "value")
    table = records.table().select(columns)
    writer = pa.ipc.new_stream(pipe, table.schema)
    (batch,) = table.combine_chunks().to_batches()
    yield 0, pipe.flush
    for time_ms, rows in records.groups():
        part = batch.slice(rows.start, rows.stop - rows.start)
        yield time_ms, lambda part=part: writer.write_batch(part)  # type: ignore[misc]
    writer.close()
