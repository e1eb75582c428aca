"""The answers of many parts and seconds in one table: the last operator before the sinks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

import xstream as xs
from linearroad.operators.check import room
from linearroad.schema import column

__all__ = ["BATCH", "TABLE", "batch"]

#: The fields of a table of answers that are written, one tuple per second.
TABLE = ("time", "kind", "who", "value", "amount")
#: Rows of complete seconds up to second `upto`, in order of time.
BATCH = {
    "upto": int,
    "kind": column("int8"),
    "time": column("int32"),
    "who": column("int32"),
    "value": column("int32"),
    "amount": column("int64"),
}

#: Indices of `progress`: waiting rows, the second that is being collected, and its tables so far.
_ROWS, _SECOND, _CAME = range(3)


class Rows(NamedTuple):
    """Answers to be emitted, by column."""

    kind: Any
    time: Any
    who: Any
    value: Any
    amount: Any


@numba.njit
def emit_rows(out, rows, progress):
    """Emit all waiting rows."""
    n = progress[_ROWS]
    out.emit_at(
        0, progress[_SECOND], rows.kind[:n], rows.time[:n], rows.who[:n], rows.value[:n],
        rows.amount[:n],
    )  # fmt: skip
    progress[_ROWS] = 0


@xs.kernel(
    state={
        "progress": np.array([0, -1, 0], np.int64),
        "kind": np.zeros(1024, np.int8),
        "time": np.zeros(1024, np.int32),
        "who": np.zeros(1024, np.int32),
        "value": np.zeros(1024, np.int32),
        "amount": np.zeros(1024, np.int64),
    },
    out=BATCH,
    at_end=True,
)
def batch(time, kind, who, value, amount, tables, at_least, state, out):
    """Emits rows of complete seconds as soon as there are `at_least` of them.

    A second consists of `tables` tuples. They arrive in order of time, so a second is also
    complete when a later one begins.
    """
    progress = state.progress
    rows = Rows(state.kind, state.time, state.who, state.value, state.amount)
    is_whole = out.ended or (time > progress[_SECOND] and progress[_CAME] > 0)
    if is_whole and progress[_ROWS] >= (1 if out.ended else at_least):
        emit_rows(out, rows, progress)
    if out.ended:
        return
    if time > progress[_SECOND]:
        progress[_SECOND], progress[_CAME] = time, 0
    n = progress[_ROWS]
    upto = n + len(kind)
    rows = Rows(
        room(rows.kind, upto), room(rows.time, upto), room(rows.who, upto), room(rows.value, upto),
        room(rows.amount, upto),
    )  # fmt: skip
    rows.kind[n:upto], rows.who[n:upto], rows.value[n:upto] = kind, who, value
    rows.amount[n:upto] = amount
    rows.time[n:upto] = time
    progress[_ROWS] = upto
    progress[_CAME] += 1
    if progress[_CAME] == tables:
        progress[_CAME] = 0
        if upto >= at_least:
            emit_rows(out, rows, progress)
