"""The driver's Arrow wire, second by second, for systems whose host language is Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from linearroad.peers.crossings import Journeys

__all__ = ["ANSWER", "BALANCE", "EXPENDITURE", "REPORT", "second_tables", "travel_times"]

ANSWER = pa.schema(
    [("type", pa.int8()), ("time", pa.int32()), ("who", pa.int32()), ("value", pa.int32()),
     ("amount", pa.int64())]
)  # fmt: skip
REPORT, MARK, BALANCE, EXPENDITURE, TRAVEL = range(5)


def second_tables(source: BinaryIO) -> Iterator[tuple[int, pa.Table]]:
    """The seconds that time marks end, and the tables of their rows."""
    batches: list[pa.RecordBatch] = []
    for batch in pa.ipc.open_stream(source):
        if batch["type"][-1].as_py() != MARK:
            batches.append(batch)
            continue
        batches.append(batch.slice(0, len(batch) - 1))
        yield batch["time"][-1].as_py(), pa.Table.from_batches(batches).combine_chunks()
        batches = []


def travel_times(rows: pa.Table, kinds: Any, journeys: Journeys) -> list[pa.Table]:
    """The answers to the travel time requests of a second, if there are any."""
    asked = rows.filter(pa.array(kinds == TRAVEL))
    if not len(asked):
        return []
    names = ("xway", "sinit", "send", "dow", "tod")
    seconds, cost = journeys.travel(*(asked[name].to_numpy() for name in names))
    columns = [np.full(len(asked), TRAVEL), asked["time"], asked["qid"], seconds, cost]
    return [pa.table(columns, names=ANSWER.names).cast(ANSWER)]
