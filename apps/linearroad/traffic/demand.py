"""The rate of new trips and their destinations (section 3.1.1 of the paper).

Trips begin at a rate that rises slowly over three hours. The number of vehicles on the road, and
with it the rate of reports, grows much faster than that: first because the road starts empty, then
because more vehicles want to pass downtown than three lanes can carry.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["cumulative_trips", "exit_shares", "trips_per_second"]

CURVE_MINUTES = 180
TRIPS_PER_SECOND_FIRST = 12.8
TRIPS_PER_SECOND_LAST = 13.3
EXIT_MEAN_SEGMENT = 50.0
EXIT_DEVIATION_SEGMENTS = 20.0
SEGMENTS = 100


def trips_per_second(second: float) -> float:
    """The rate at which trips begin; after the rush it falls to two fifths within an hour.

    >>> trips_per_second(0), trips_per_second(180 * 60)
    (12.8, 13.3)
    """
    curve_s = CURVE_MINUTES * 60
    rise = (TRIPS_PER_SECOND_LAST - TRIPS_PER_SECOND_FIRST) * min(second / curve_s, 1.0)
    after = min(max((second - curve_s) / 3600.0, 0.0), 1.0)
    return (TRIPS_PER_SECOND_FIRST + rise) * (1.0 - 0.6 * after)


def cumulative_trips(seconds: int, share: float = 1.0) -> NDArray[np.float64]:
    """Trips begun before each second 0..seconds; `share` scales the demand (1 = the benchmark's).

    >>> cumulative_trips(2).round(2).tolist()
    [0.0, 12.8, 25.6]
    """
    rates = np.array([trips_per_second(second) for second in range(seconds)], np.float64)
    return np.concatenate(([0.0], np.cumsum(rates * share)))


def exit_shares() -> NDArray[np.float64]:
    """Cumulative shares of the 100 exit segments: normal around 50, deviation 20, cut to the road.

    >>> shares = exit_shares()
    >>> round(float(shares[49]), 2), float(shares[99])
    (0.5, 1.0)
    """
    edges = [
        math.erf((edge - EXIT_MEAN_SEGMENT) / (EXIT_DEVIATION_SEGMENTS * math.sqrt(2.0)))
        for edge in range(SEGMENTS + 1)
    ]
    cumulative = (np.array(edges[1:]) - edges[0]) / (edges[-1] - edges[0])
    cumulative[-1] = 1.0
    return cumulative
