"""Shared by all kernels of the simulation: units, vehicles, random numbers, car-following.

Units are feet and seconds; `x` is the distance travelled from the direction's own beginning, so
that both directions run the same code (Dir 1 is mirrored when a report is written).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import xstream as xs

SECONDS_BETWEEN_REPORTS = 30
SEGMENTS = 100
SEGMENT_FT = 5280.0
ROAD_FT = 528_000
MPH_PER_FTPS = 3600.0 / 5280.0
VEHICLE_FT = 14.0
NOBODY_FT = 1e9

# Ramps, as offsets in a segment. From the end of the diverging stretch to the end of the exit ramp
# it takes more than 30 s at 40 mph, so every vehicle that leaves has reported from lane 4.
EXIT_START_FT, DIVERGE_END_FT, EXIT_END_FT = 600.0, 2200.0, 4010.0
ENTRY_START_FT, MERGE_START_FT, ENTRY_END_FT = 1500.0, 3000.0, 4600.0
RAMP_FTPS = 58.6

# IDM (Treiber, Hennecke, Helbing 2000); desired speed and time headway differ by driver.
ACCELERATION = 6.0
COMFORTABLE_BRAKING = 8.0
STANDSTILL_GAP_FT = 4.0
SMALLEST_GAP_FT = 2.0
INVERSE_2_SQRT_AB = 1.0 / (2.0 * (ACCELERATION * COMFORTABLE_BRAKING) ** 0.5)

# States of a vehicle.
DRIVING, SKIDDING, REAR_ENDING, WRECKED = 0, 1, 2, 3

# A vehicle is one cache line, because neighbours in a lane are not neighbours in memory.
CAR = np.dtype(
    [
        ("x", np.float64),
        ("v", np.float64),
        ("desired", np.float64),  # speed on an empty road
        ("headway", np.float64),  # seconds kept to the leader
        ("ease", np.float64),  # limit of this second's acceleration, to open or to find a gap
        ("exit_at", np.int32),  # the exit's segment, counted along the direction of travel
        ("trip", np.int32),
        ("report_at", np.int32),
        ("changed_at", np.int32),  # the second of the last lane change
        ("doing", np.int32),
        ("moved_to", np.int32),  # see gather()
    ]
)

# Columns of Road.accidents (float64), and its states.
(
    ACCIDENT_PLANNED,
    ACCIDENT_DIR,
    ACCIDENT_LANE,
    ACCIDENT_X,
    ACCIDENT_CLEARING_S,
    ACCIDENT_STATE,
    ACCIDENT_FRONT,
    ACCIDENT_REAR,
    ACCIDENT_STOPPED,
    ACCIDENT_DETECTED,
    ACCIDENT_CLEARED,
    ACCIDENT_COLUMNS,
) = range(12)
PLANNED, CRASHING, STANDING, CLEARED = 0, 1, 2, 3

# Indices of Road.tally (int64).
ARRIVED, ENTERED, LEFT, FREE_SLOTS = 0, 1, 2, 3


class Road(NamedTuple):
    """All state of one expressway."""

    cars: np.ndarray  # CAR, by slot
    spare: np.ndarray  # scratch for gather(), as large as cars
    free: np.ndarray  # a stack of unused slots
    order: np.ndarray  # [dir, lane, place]: slots, foremost first
    counts: np.ndarray  # [dir, lane]
    movers: np.ndarray  # scratch: places in a lane of vehicles that leave it
    fresh: np.ndarray  # scratch: slots of vehicles that enter a lane

    ramp_tail: np.ndarray  # [dir, segment]: x of the last vehicle on the entry ramp
    waiting_head: np.ndarray  # [dir, segment]: trips that wait for room on the ramp, a linked list
    waiting_tail: np.ndarray
    waiting_next: np.ndarray  # by trip
    trip_exit: np.ndarray  # by trip: the exit's segment, counted along the direction of travel
    trip_entry: np.ndarray  # by trip: the entry's segment number
    trip_dir: np.ndarray
    first_report: np.ndarray  # by trip; -1 before
    last_report: np.ndarray
    left_at: np.ndarray  # by trip: the second it left the exit ramp; -1 before

    accidents: np.ndarray
    wrecks: np.ndarray  # scratch: positions of the wrecks of a direction
    demand: np.ndarray  # by second: trips begun before it, as a real number
    exit_share: np.ndarray  # cumulative shares of the exit segments
    tally: np.ndarray


@xs.compiled
def mix(key, counter):
    """The output of Splitmix64 for one counter: a random number without any state."""
    z = np.uint64(key) + (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@xs.compiled
def unit(key, counter):
    """A uniform number in [0, 1) for one counter."""
    return np.float64(mix(key, counter) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@xs.compiled(error_model="numpy")
def idm(v, desired, headway, gap, closing):
    """Acceleration by the intelligent driver model; `closing` is the speed towards the leader."""
    ratio = v / desired
    ratio *= ratio
    free = max(ACCELERATION * (1.0 - ratio * ratio), -COMFORTABLE_BRAKING)
    wanted = max(v * headway + v * closing * INVERSE_2_SQRT_AB, 0.0)
    squeeze = (STANDSTILL_GAP_FT + wanted) / max(gap, 0.1)
    return free - ACCELERATION * squeeze * squeeze


@xs.compiled(error_model="numpy")
def toward(cars, slot, leader):
    """IDM acceleration of a slot behind a leader, -1 for none."""
    car = cars[slot]
    if leader < 0:
        return idm(car.v, car.desired, car.headway, NOBODY_FT, 0.0)
    gap = cars[leader].x - VEHICLE_FT - car.x
    return idm(car.v, car.desired, car.headway, gap, car.v - cars[leader].v)


@xs.compiled
def insert(cars, order, count, slots, n):
    """Merge n slots, foremost first, into an ordered lane that has room for them."""
    last = count - 1
    write = count + n - 1
    k = n - 1
    while k >= 0:
        if last >= 0 and cars[order[last]].x < cars[slots[k]].x:
            order[write] = order[last]
            last -= 1
        else:
            order[write] = slots[k]
            k -= 1
        write -= 1


@xs.compiled
def gather(road):
    """Renumber the slots in the order of the lanes, so that neighbours are neighbours in memory."""
    cars, spare = road.cars, road.spare
    n = 0
    for d in range(2):
        for lane in range(5):
            for i in range(road.counts[d, lane]):
                spare[n] = cars[road.order[d, lane, i]]
                # Until all are copied, the entry of a slot's old number holds the new number.
                cars[road.order[d, lane, i]].moved_to = n
                road.order[d, lane, i] = n
                n += 1
    for k in range(road.accidents.shape[0]):
        accident = road.accidents[k]
        if accident[ACCIDENT_STATE] == CRASHING or accident[ACCIDENT_STATE] == STANDING:
            accident[ACCIDENT_FRONT] = cars[int(accident[ACCIDENT_FRONT])].moved_to
            accident[ACCIDENT_REAR] = cars[int(accident[ACCIDENT_REAR])].moved_to
    cars[:n] = spare[:n]
    for k in range(cars.shape[0] - n):
        road.free[k] = cars.shape[0] - 1 - k
    road.tally[FREE_SLOTS] = cars.shape[0] - n
