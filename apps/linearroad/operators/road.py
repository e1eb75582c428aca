"""The road as the live view shows it: at the start of a minute, every segment's speed and toll."""

from __future__ import annotations

import numba
import numpy as np

import xstream as xs
from linearroad.operators import thesis_tolls as thesis
from linearroad.operators import tolls as paper
from linearroad.schema import NO_MINUTE, SEGMENTS, column

__all__ = ["SHOWN", "road", "thesis_road"]

#: The segments of the first expressway, in both directions.
SHOWN = 2 * SEGMENTS
#: The minute that begins; by segment: the LAV (or what stands for none), the toll, and whether an
#: accident was there in the minute before.
ROAD = {
    "minute": int,
    "speed": column("int32"),
    "toll": column("int64"),
    "accident": column("int8"),
}


@numba.njit
def had_accident(last, before, minute):
    """By segment, whether an accident was there in a minute."""
    found = np.zeros(SHOWN, np.int8)
    for key in range(SHOWN):
        found[key] = last[key] == minute or before[key] == minute
    return found


@xs.kernel(
    state={
        "minute": np.array([NO_MINUTE], np.int64),
        "lav": np.zeros(SHOWN, np.int32),
        "cars": np.zeros(SHOWN, np.int32),
        "alert": np.full(SHOWN, -1, np.int32),
        "above": np.zeros(SHOWN, np.int32),
        "last": np.full(SHOWN, NO_MINUTE, np.int64),
        "before": np.full(SHOWN, NO_MINUTE, np.int64),
    },
    out=ROAD,
)
def road(time, key, segment, mark, no_lav, state, out):
    """The first expressway whenever a minute begins, by the tables of `tolls`."""
    known = paper.Known(state.lav, state.cars, state.alert, state.above, state.last, state.before)
    known, is_new = paper.with_segments(known, paper.most_segments(key, mark, len(segment)), no_lav)
    paper.updated(known, state.minute, time, segment, mark, no_lav, is_new)
    if len(segment) == 0:
        return
    toll = np.empty(SHOWN, np.int64)
    for k in range(SHOWN):
        toll[k] = paper.toll_for(known.above[k])
    accident = had_accident(known.last, known.before, time // 60 - 1)
    out.emit_at(0, time // 60, known.lav[:SHOWN].copy(), toll, accident)


@xs.kernel(
    state={
        "speed": np.full(SHOWN, thesis.NO_SPEED, np.int32),
        "cars": np.zeros(SHOWN, np.int32),
        "accident": np.zeros(SHOWN, np.int8),
    },
    out=ROAD,
)
def thesis_road(time, report, segment, change, base, state, out):
    """The same by the tables of `thesis_tolls`."""
    known = thesis.Known(state.speed, state.cars, state.accident)
    known = thesis.updated(known, report, segment, change)
    if len(segment) == 0:
        return
    toll = np.empty(SHOWN, np.int64)
    for key in range(SHOWN):
        toll[key] = thesis.toll_of(known, key, base)
    speed, accident = known.speed[:SHOWN].copy(), known.accident[:SHOWN].copy()
    out.emit_at(0, time // 60, speed, toll, accident)
