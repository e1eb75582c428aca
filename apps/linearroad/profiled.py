"""`xstream profile linearroad`: the query over one expressway of even traffic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.network import one_expressway
from linearroad.rules import rules_named
from linearroad.run.feed import RAW
from linearroad.schema import (
    DIR,
    FEET_A_SEGMENT,
    FIELDS,
    LANE,
    POS,
    SEG,
    SEGMENTS,
    SPD,
    TIME,
    TYPE,
    VID,
    XWAY,
)
from linearroad.tables.batches import PERIOD

__all__ = ["declare"]

SECONDS = 120  # of traffic, per repetition
FEET_PER_S = 66
MPH = 45


def declare(query: xs.Query, window: int, repeat: int) -> None:
    """Declare the query for `window` vehicles in both directions, two minutes per repetition."""
    rows = query.source(xs.io.iterable(lambda: _rows(window, SECONDS * repeat), out=RAW))
    one_expressway(query, rows, rules_named("paper"))


def _rows(vehicles: int, seconds: int) -> Iterator[tuple[Any, ...]]:
    """The reports of every second, as the query takes them."""
    given = 0
    for second in range(seconds):
        rows = _reports(vehicles, second)
        origin = np.arange(given + 1, given + 1 + rows.shape[1], dtype=np.int64)
        given += rows.shape[1]
        yield xs.SigSeg(rows.reshape(-1)), xs.SigSeg(origin), second


def _reports(vehicles: int, second: int) -> NDArray[np.int32]:
    """One column per vehicle that reports in this second; vehicles report every 30 seconds."""
    vid = np.arange(second % PERIOD, vehicles, PERIOD)
    rows = np.full((FIELDS, len(vid)), -1, np.int32)
    feet = SEGMENTS * FEET_A_SEGMENT
    ahead = (vid * feet // max(vehicles, 1) + FEET_PER_S * second) % feet
    direction = vid % 2
    pos = np.where(direction == 0, ahead, feet - 1 - ahead)
    fields: dict[int, Any] = {
        TYPE: 0, TIME: second, VID: vid, SPD: MPH, XWAY: 0, LANE: 1 + vid % 3, DIR: direction,
        SEG: pos // FEET_A_SEGMENT, POS: pos,
    }  # fmt: skip
    for field, value in fields.items():
        rows[field] = value
    return rows
