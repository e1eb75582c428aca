"""One expressway, second by second: the checked interface of the compiled simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linearroad.traffic import _kernels_cars as k
from linearroad.traffic._kernels import advance
from linearroad.traffic.demand import cumulative_trips, exit_shares
from xstream.errors import InputError

__all__ = ["Expressway", "Reports", "expressway_key", "unpack"]

ACCIDENT_WINDOW_S = 1200
# Early enough in its twenty minutes for the accident to be detected within them.
ACCIDENT_LATEST_S = 960
# More than the road, bumper to bumper, and its ramps can hold.
SLOTS = 240_000


class Reports(NamedTuple):
    """The position reports of some seconds, in order of time, and the rows per second."""

    packed: NDArray[np.int32]
    rows_by_second: NDArray[np.int64]


class Unpacked(NamedTuple):
    """The fields that a packed report holds."""

    trip: NDArray[np.int32]
    pos: NDArray[np.int32]
    spd: NDArray[np.int32]
    lane: NDArray[np.int32]
    dir: NDArray[np.int32]


def unpack(packed: NDArray[np.int32]) -> Unpacked:
    """Unpack reports; the inverse of `write_report` in the simulation."""
    word = packed[:, 1]
    return Unpacked(
        packed[:, 0], word & 0xFFFFF, (word >> 20) & 0x7F, (word >> 27) & 0x7, (word >> 30) & 1
    )


def expressway_key(seed: int, xway: int) -> np.uint64:
    """The key of all random numbers of one expressway; it depends on neither worker nor clock."""
    return _mixed(_mixed(np.uint64(seed), 0x11EA4), xway)


def _mixed(key: np.uint64, counter: int) -> np.uint64:
    # Compiled functions return uint64 as a Python int, which the next one would take as signed.
    return np.uint64(k.mix(key, np.int64(counter)))


def planned_accidents(key: np.uint64, seconds: int) -> NDArray[np.float64]:
    """One accident in every 20 minutes, at a random place (the paper's section 3.1.1)."""
    windows = -(-seconds // ACCIDENT_WINDOW_S)
    accidents = np.full((windows, k.ACCIDENT_COLUMNS), -1.0)
    stream = _mixed(key, 0xACC1DE47)
    for window in range(windows):
        u = [k.unit(stream, np.int64(window * 8 + draw)) for draw in range(5)]
        # The road starts empty: the first accident needs two cars close together.
        earliest = 300 if window == 0 else 0
        begin = earliest + int(u[0] * (ACCIDENT_LATEST_S - earliest))
        accidents[window, k.ACCIDENT_PLANNED] = window * ACCIDENT_WINDOW_S + begin
        accidents[window, k.ACCIDENT_DIR] = int(u[1] * 2)
        accidents[window, k.ACCIDENT_LANE] = 1 + int(u[2] * 3)
        accidents[window, k.ACCIDENT_X] = 5280.0 * (2.0 + 96.0 * u[3])
        accidents[window, k.ACCIDENT_CLEARING_S] = 600 + int(u[4] ** 3 * 601)
        accidents[window, k.ACCIDENT_STATE] = k.PLANNED
    return accidents


def thesis_accidents(key: np.uint64, seconds: int) -> NDArray[np.float64]:
    """In each direction one accident after another, 20 minutes each (docs/linear-road-thesis.md).

    The clearing time is negative: minus the second at which the accident is over.
    """
    windows = -(-seconds // ACCIDENT_WINDOW_S)
    accidents = np.full((2 * windows, k.ACCIDENT_COLUMNS), -1.0)
    stream = _mixed(key, 0x7E515)
    for row in range(2 * windows):
        window, direction = divmod(row, 2)
        u = [k.unit(stream, np.int64(row * 8 + draw)) for draw in range(2)]
        accidents[row, k.ACCIDENT_PLANNED] = window * ACCIDENT_WINDOW_S
        accidents[row, k.ACCIDENT_DIR] = direction
        accidents[row, k.ACCIDENT_LANE] = 1 + int(u[0] * 3)
        accidents[row, k.ACCIDENT_X] = 5280.0 * (2.0 + 96.0 * u[1])
        accidents[row, k.ACCIDENT_CLEARING_S] = -(window + 1.0) * ACCIDENT_WINDOW_S
        accidents[row, k.ACCIDENT_STATE] = k.PLANNED
    return accidents


@dataclass
class Expressway:
    """The simulation of one expressway over at most `seconds` seconds.

    >>> road = Expressway(seed=1, xway=0, seconds=120)
    >>> reports = road.advance(60)
    >>> int(reports.rows_by_second.sum()) == len(reports.packed) > 0
    True
    """

    seed: int
    xway: int
    seconds: int
    demand_share: float = 1.0
    accidents: bool = True
    traffic: str = "paper"
    now: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.seconds <= 0:
            raise InputError(f"a simulation must last at least one second, not {self.seconds}")
        if self.seed < 0 or self.xway < 0:
            raise InputError(
                f"seed and expressway must not be negative, not {self.seed}, {self.xway}"
            )
        self.key = expressway_key(self.seed, self.xway)
        self.road = self._empty_road()

    def _empty_road(self) -> k.Road:
        demand = cumulative_trips(self.seconds, self.demand_share)
        trips = int(demand[-1]) + 1
        plans = thesis_accidents if self.traffic == "thesis" else planned_accidents
        plan = plans(self.key, self.seconds if self.accidents else 0)
        tally = np.zeros(4, np.int64)
        tally[k.FREE_SLOTS] = SLOTS

        def by_trip(dtype: type) -> NDArray[np.generic]:
            return np.full(trips, -1, dtype)

        def by_ramp(dtype: type, value: float) -> NDArray[np.generic]:
            return np.full((2, k.SEGMENTS), value, dtype)

        return k.Road(
            cars=np.zeros(SLOTS, k.CAR),
            spare=np.zeros(SLOTS, k.CAR),
            free=np.arange(SLOTS - 1, -1, -1, dtype=np.int32),
            order=np.zeros((2, 5, SLOTS // 4), np.int32),
            counts=np.zeros((2, 5), np.int64),
            movers=np.zeros(SLOTS // 4, np.int32),
            fresh=np.zeros(SLOTS // 4, np.int32),
            ramp_tail=by_ramp(np.float64, k.NOBODY_FT),
            waiting_head=by_ramp(np.int32, -1),
            waiting_tail=by_ramp(np.int32, -1),
            waiting_next=by_trip(np.int32),
            trip_exit=by_trip(np.int8),
            trip_entry=by_trip(np.int8),
            trip_dir=by_trip(np.int8),
            first_report=by_trip(np.int32),
            last_report=by_trip(np.int32),
            left_at=by_trip(np.int32),
            accidents=plan,
            wrecks=np.zeros(len(plan)),
            demand=demand,
            exit_share=exit_shares(),
            tally=tally,
        )

    def advance(self, seconds: int) -> Reports:
        """Simulate some more seconds and return their reports."""
        end = min(self.now + seconds, self.seconds)
        rows_by_second = np.zeros(end - self.now, np.int64)
        # All vehicles on the road, once per 30 s begun, and those that will enter.
        fresh = int(self.road.demand[end]) - int(self.road.tally[k.ENTERED])
        rounds = 1 + -(-(end - self.now) // k.SECONDS_BETWEEN_REPORTS)
        out = np.empty(((self.on_road + fresh) * rounds + 1, 2), np.int32)
        rows = advance(self.road, self.key, self.now, end, out, rows_by_second)
        self.now = end
        return Reports(out[:rows], rows_by_second)

    @property
    def on_road(self) -> int:
        """Vehicles on the expressway and its ramps."""
        return int(self.road.counts.sum())

    @property
    def waiting(self) -> int:
        """Trips that have begun and wait for room on their entry ramp."""
        return int(self.road.tally[k.ARRIVED] - self.road.tally[k.ENTERED])

    @property
    def left(self) -> int:
        """Trips that have ended at an exit ramp."""
        return int(self.road.tally[k.LEFT])
