"""Demand on the road: trips begin at entry ramps, accidents happen and are cleared."""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.traffic._kernels_cars import (
    ACCIDENT_CLEARED,
    ACCIDENT_CLEARING_S,
    ACCIDENT_DETECTED,
    ACCIDENT_DIR,
    ACCIDENT_FRONT,
    ACCIDENT_LANE,
    ACCIDENT_PLANNED,
    ACCIDENT_REAR,
    ACCIDENT_STATE,
    ACCIDENT_STOPPED,
    ACCIDENT_X,
    ARRIVED,
    CLEARED,
    CRASHING,
    DRIVING,
    ENTERED,
    ENTRY_START_FT,
    FREE_SLOTS,
    NOBODY_FT,
    PLANNED,
    REAR_ENDING,
    SECONDS_BETWEEN_REPORTS,
    SEGMENT_FT,
    SEGMENTS,
    SKIDDING,
    STANDING,
    STANDSTILL_GAP_FT,
    VEHICLE_FT,
    WRECKED,
    insert,
    unit,
)

ENTRY_FTPS = 30.0
SHORTEST_HEADWAY_S, HEADWAYS_S = 0.6, 0.5

# Purposes of the random numbers of a trip; the last is drawn again until the exit is acceptable.
DRAW_ENTRY, DRAW_SPEED, DRAW_SPEED_2, DRAW_HEADWAY, DRAW_EXIT, DRAWS = 0, 1, 2, 3, 4, 64


@xs.compiled
def draw_exit(key, trip, entry, exit_share):
    """An exit segment other than `entry`, by the paper's section 3.1.1: normally distributed."""
    for attempt in range(DRAW_EXIT, DRAWS):
        u = unit(key, trip * DRAWS + attempt)
        low, high = 0, SEGMENTS - 1
        while low < high:
            middle = (low + high) // 2
            if exit_share[middle] > u:
                high = middle
            else:
                low = middle + 1
        if low != entry:
            return low
    return SEGMENTS // 2 if entry != SEGMENTS // 2 else SEGMENTS // 2 + 1


@xs.compiled
def begin_trips(road, key, t):
    """Add the trips of this second to the queues of their ramps."""
    until = np.int64(road.demand[t + 1])
    for trip in range(road.tally[ARRIVED], until):
        entry = np.int64(unit(key, trip * DRAWS + DRAW_ENTRY) * SEGMENTS)
        leave = draw_exit(key, trip, entry, road.exit_share)
        d = 0 if leave > entry else 1
        place = entry if d == 0 else SEGMENTS - 1 - entry
        road.trip_exit[trip] = leave if d == 0 else SEGMENTS - 1 - leave
        road.trip_entry[trip] = entry
        road.trip_dir[trip] = d
        road.waiting_next[trip] = -1
        if road.waiting_head[d, place] < 0:
            road.waiting_head[d, place] = trip
        else:
            road.waiting_next[road.waiting_tail[d, place]] = trip
        road.waiting_tail[d, place] = trip
    if until > road.tally[ARRIVED]:
        road.tally[ARRIVED] = until


@xs.compiled
def place_on_ramp(road, key, t, trip, x, room):
    """A new vehicle at the beginning of a ramp; returns its slot."""
    cars = road.cars
    road.tally[FREE_SLOTS] -= 1
    slot = road.free[road.tally[FREE_SLOTS]]
    spread = unit(key, trip * DRAWS + DRAW_SPEED) + unit(key, trip * DRAWS + DRAW_SPEED_2) - 1.0
    cars[slot].x = x
    cars[slot].v = min(ENTRY_FTPS, 0.5 * room)
    cars[slot].desired = 95.0 + 18.0 * spread
    cars[slot].headway = SHORTEST_HEADWAY_S + HEADWAYS_S * unit(key, trip * DRAWS + DRAW_HEADWAY)
    cars[slot].ease = NOBODY_FT
    cars[slot].exit_at = road.trip_exit[trip]
    cars[slot].trip = trip
    cars[slot].report_at = t
    cars[slot].changed_at = t
    cars[slot].doing = DRIVING
    road.tally[ENTERED] += 1
    return slot


@xs.compiled
def fill_ramps(road, key, t, d):
    """Move the first waiting vehicle onto each ramp with room; lane 0 stays in order."""
    n = 0
    for place in range(SEGMENTS - 1, -1, -1):
        trip = road.waiting_head[d, place]
        if trip < 0 or road.tally[FREE_SLOTS] == 0:
            continue
        x = place * SEGMENT_FT + ENTRY_START_FT
        room = road.ramp_tail[d, place] - VEHICLE_FT - x
        if room < 2.0 * STANDSTILL_GAP_FT:
            continue
        road.waiting_head[d, place] = road.waiting_next[trip]
        road.fresh[n] = place_on_ramp(road, key, t, trip, x, room)
        n += 1
    insert(road.cars, road.order[d, 0], road.counts[d, 0], road.fresh, n)
    road.counts[d, 0] += n


@xs.compiled
def find_pair(road, d, lane, x, reach, spacing):
    """The index in the lane of the pair nearest to x that is close enough together, or -1."""
    cars, order = road.cars, road.order[d, lane]
    best, best_distance = -1, reach
    for i in range(road.counts[d, lane] - 1):
        front = order[i]
        distance = abs(cars[front].x - x)
        if distance >= best_distance:
            continue
        rear = order[i + 1]
        if cars[front].x - cars[rear].x > spacing:
            continue
        if cars[front].doing == DRIVING and cars[rear].doing == DRIVING:
            best, best_distance = i, distance
    return best


@xs.compiled
def begin_accident(road, accident, t):
    """Pick two consecutive vehicles near the planned place; the search widens over time."""
    d, lane = int(accident[ACCIDENT_DIR]), int(accident[ACCIDENT_LANE])
    late = t - accident[ACCIDENT_PLANNED]
    reach = 1500.0 + 500.0 * late
    if accident[ACCIDENT_CLEARING_S] < 0:
        reach = NOBODY_FT  # the accidents of the thesis follow each other at once, wherever it is
    i = find_pair(road, d, lane, accident[ACCIDENT_X], reach, 150.0 + 10.0 * late)
    if i < 0:
        return
    front, rear = road.order[d, lane, i], road.order[d, lane, i + 1]
    cars = road.cars
    cars[front].doing = SKIDDING
    cars[rear].doing = REAR_ENDING
    accident[ACCIDENT_FRONT] = front
    accident[ACCIDENT_REAR] = rear
    accident[ACCIDENT_STATE] = CRASHING


@xs.compiled
def run_accidents(road, t):
    """Advance every planned accident: crash, stand until cleared, drive away."""
    cars = road.cars
    for k in range(road.accidents.shape[0]):
        accident = road.accidents[k]
        state = accident[ACCIDENT_STATE]
        if state == PLANNED:
            if t >= accident[ACCIDENT_PLANNED]:
                begin_accident(road, accident, t)
        elif state == CRASHING:
            front, rear = int(accident[ACCIDENT_FRONT]), int(accident[ACCIDENT_REAR])
            if cars[front].doing == WRECKED and cars[rear].doing == WRECKED:
                # Detected by the fourth report from the same place of the later of the two.
                seen = max(cars[front].report_at, cars[rear].report_at)
                seen += 3 * SECONDS_BETWEEN_REPORTS
                accident[ACCIDENT_STATE] = STANDING
                accident[ACCIDENT_STOPPED] = t
                accident[ACCIDENT_DETECTED] = seen
                clearing = accident[ACCIDENT_CLEARING_S]
                accident[ACCIDENT_CLEARED] = seen + clearing if clearing >= 0 else -clearing
                accident[ACCIDENT_X] = cars[front].x
        elif state == STANDING and t >= accident[ACCIDENT_CLEARED]:
            cars[int(accident[ACCIDENT_FRONT])].doing = DRIVING
            cars[int(accident[ACCIDENT_REAR])].doing = DRIVING
            accident[ACCIDENT_STATE] = CLEARED
