"""Travel times over numpy arrays, for systems whose host language is Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linearroad.generation.layout import Layout
from linearroad.history.store import SEGMENT_SUMS

__all__ = ["Journeys", "crossings"]

MINUTES = 1440
EXACT = 1e-9


def crossings(sums: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Minutes to cross a segment, and its toll, from the sums of the history.

    docs/linear-road-rules.md, section 3.3.
    """
    speeds, vehicles, days = (sums[..., place].astype(np.int64) for place in range(3))
    fast = speeds > days  # above 1 mph
    minutes = np.where(fast, 60.0 * days / np.where(fast, speeds, 1), 60.0)
    cars = vehicles // np.maximum(days, 1)
    toll = np.where((speeds < 40 * days) & (cars > 50), 2 * (cars - 50) ** 2, 0)
    return minutes, toll


class Journeys:
    """The seconds and tolls of many journeys at once."""

    def __init__(self, history: Path, base_expressways: int) -> None:
        found = [
            crossings(np.load(Layout(history).store(xway) / SEGMENT_SUMS))
            for xway in range(base_expressways)
        ]
        self._minutes = np.stack([minutes for minutes, _ in found])
        self._tolls = np.stack([tolls.astype(np.int32) for _, tolls in found])

    def travel(
        self, xway: Any, sinit: Any, send: Any, dow: Any, tod: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Seconds and tolls, segment by segment at the minute each is reached."""
        xway = np.asarray(xway) % len(self._minutes)
        at, last, day = np.array(sinit), np.asarray(send), np.asarray(dow) - 1
        way = (at > last).astype(np.int64)
        taken, cost = np.zeros(len(at)), np.zeros(len(at), np.int64)
        while len(going := np.flatnonzero(at != last)):
            minute = (np.floor(tod[going] + taken[going] + EXACT).astype(np.int64) - 1) % MINUTES
            place = (xway[going], day[going], way[going], minute, at[going])
            taken[going] += self._minutes[place]
            cost[going] += self._tolls[place]
            at[going] += 1 - 2 * way[going]
        return np.floor(60 * taken + 0.5 + EXACT).astype(np.int64), cost
