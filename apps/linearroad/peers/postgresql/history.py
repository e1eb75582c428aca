"""History in PostgreSQL: arrays by vehicle and by minute, loaded by binary COPY."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linearroad.generation.layout import Layout
from linearroad.history.store import SEGMENT_SUMS, TOLL_VIDS, TOLLS
from linearroad.peers.crossings import crossings
from linearroad.peers.system import Task

__all__ = ["load_history"]

INT4, FLOAT8 = 23, 701  # types of PostgreSQL
HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
ROWS = 1 << 14  # per message


def load_history(connection: Any, task: Task) -> None:
    """Fill the tables `tolls` and `segments` with the history of the base."""
    for xway in range(task.base_expressways):  # requests may name any of them
        store = Layout(task.history).store(xway)
        vids, tolls = np.load(store / TOLL_VIDS), np.load(store / TOLLS, mmap_mode="r")
        keys = np.stack([vids, np.full(len(vids), xway, np.int32)], axis=1)
        copy_rows(connection, "tolls", keys, tolls.astype(">i4"))
        sums = np.load(store / SEGMENT_SUMS).reshape(-1, 100, 3)
        minutes, toll = crossings(sums)
        places = np.stack(np.unravel_index(np.arange(len(sums)), (7, 2, 1440)), axis=1)
        keys = np.insert(places + np.array([1, 0, 1]), 0, xway, axis=1)
        copy_rows(connection, "segments", keys, minutes.astype(">f8"), toll.astype(">i4"))
    connection.execute("ANALYZE tolls, segments")
    connection.commit()


def copy_rows(connection: Any, table: str, keys: NDArray[Any], *arrays: NDArray[Any]) -> None:
    """Write rows of integer keys and one-dimensional arrays to a table."""
    fields: list[Any] = [("fields", ">i2")]
    for place in range(keys.shape[1]):
        fields += [(f"length{place}", ">i4"), (f"key{place}", ">i4")]
    for place, array in enumerate(arrays):
        element = np.dtype([("length", ">i4"), ("value", array.dtype)])
        fields += [(f"bytes{place}", ">i4"), (f"head{place}", ">i4", 5),
                   (f"array{place}", element, array.shape[1])]  # fmt: skip
    rows = np.empty(min(ROWS, len(keys)), np.dtype(fields))
    rows["fields"] = keys.shape[1] + len(arrays)
    for place in range(keys.shape[1]):
        rows[f"length{place}"] = 4
    for place, array in enumerate(arrays):
        kind = FLOAT8 if array.dtype.kind == "f" else INT4
        rows[f"bytes{place}"] = 20 + rows.dtype[f"array{place}"].itemsize
        rows[f"head{place}"] = (1, 0, kind, array.shape[1], 1)
        rows[f"array{place}"]["length"] = array.dtype.itemsize
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
        copy.write(HEADER)
        for begin in range(0, len(keys), ROWS):
            part = rows[: len(keys) - begin]
            here = slice(begin, begin + len(part))
            for place in range(keys.shape[1]):
                part[f"key{place}"] = keys[here, place]
            for place, array in enumerate(arrays):
                part[f"array{place}"]["value"] = array[here]
            copy.write(part.tobytes())
        copy.write(TRAILER)
