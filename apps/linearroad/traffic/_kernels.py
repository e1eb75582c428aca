"""The microscopic simulation of one expressway, second by second.

A vehicle is a slot in an array of cars; a lane is an `order` of slots, foremost first. One second:

1. new trips queue at their entry ramps, which admit those that fit; accidents begin and end;
2. vehicles change lane;
3. reports that are due are written, and vehicles move by the intelligent driver model.
"""

from __future__ import annotations

import xstream as xs
from linearroad.traffic._kernels_cars import (
    ACCIDENT_DIR,
    ACCIDENT_STATE,
    ACCIDENT_X,
    DIVERGE_END_FT,
    DRIVING,
    ENTRY_END_FT,
    EXIT_END_FT,
    EXIT_START_FT,
    FREE_SLOTS,
    LEFT,
    MPH_PER_FTPS,
    NOBODY_FT,
    RAMP_FTPS,
    REAR_ENDING,
    ROAD_FT,
    SECONDS_BETWEEN_REPORTS,
    SEGMENT_FT,
    SEGMENTS,
    SKIDDING,
    SMALLEST_GAP_FT,
    STANDING,
    VEHICLE_FT,
    WRECKED,
    gather,
    idm,
)
from linearroad.traffic._kernels_lanes import change_lanes
from linearroad.traffic._kernels_trips import begin_trips, fill_ramps, run_accidents

EXIT_RAMP_FTPS = 50.0
# The speed past a wreck, in all lanes, and the distance before it from which it is kept.
PASSING_FTPS = 10.0
PASSING_FT = 1500.0
HARDEST_BRAKING = 26.0
CRASH_BRAKING = 22.0
SECONDS_BETWEEN_GATHERS = 60


@xs.compiled
def write_report(cars, first_report, last_report, t, d, lane, slot, out, row):
    """One report as two int32: the trip, and position, speed, lane and direction in 31 bits."""
    along = min(int(cars[slot].x), ROAD_FT - 1)
    pos = along if d == 0 else ROAD_FT - 1 - along
    speed = int(cars[slot].v * MPH_PER_FTPS + 0.5)
    trip = cars[slot].trip
    out[row, 0] = trip
    out[row, 1] = pos | (speed << 20) | (lane << 27) | (d << 30)
    if first_report[trip] < 0:
        first_report[trip] = t
    last_report[trip] = t
    cars[slot].report_at = t + SECONDS_BETWEEN_REPORTS


@xs.compiled
def crash_step(cars, slot, leader, leader_x, leader_v):
    """The movement of a vehicle in an accident: the front one skids, the rear one hits it."""
    x, v = cars[slot].x, cars[slot].v
    if cars[slot].doing == SKIDDING:
        new_v = max(v - CRASH_BRAKING, 0.0)
        new_x = x + 0.5 * (v + new_v)
        if leader >= 0 and new_x > leader_x - VEHICLE_FT - SMALLEST_GAP_FT:
            new_x = max(x, leader_x - VEHICLE_FT - SMALLEST_GAP_FT)
            new_v = 0.0
        if new_v == 0.0:
            cars[slot].doing = WRECKED
    elif cars[slot].doing == REAR_ENDING:
        new_v = max(v, 15.0)
        new_x = x + new_v
        if new_x >= leader_x:
            new_x = leader_x
            new_v = leader_v
            if cars[leader].doing == WRECKED:
                cars[slot].doing = WRECKED
                new_v = 0.0
    else:
        new_x, new_v = x, 0.0
    return new_x, new_v


@xs.compiled
def find_wrecks(accidents, d, places):
    """Write the positions of all wrecks of a direction to `places`; returns their number."""
    n = 0
    for k in range(accidents.shape[0]):
        if accidents[k, ACCIDENT_STATE] == STANDING and accidents[k, ACCIDENT_DIR] == d:
            places[n] = accidents[k, ACCIDENT_X]
            n += 1
    return n


@xs.compiled
def passes_wreck(places, n, x):
    """Whether a vehicle at x is in front of a wreck, in whichever lane it is."""
    passing = False
    for k in range(n):
        passing |= 0.0 <= places[k] - x < PASSING_FT
    return passing


@xs.compiled
def drive(cars, slot, lane, passing, leader_old_x, leader_new_x, leader_new_v):
    """A second of car-following; the new position never reaches the leader's new tail."""
    x, v = cars[slot].x, cars[slot].v
    desired = cars[slot].desired
    if lane == 0:
        desired = RAMP_FTPS
    elif lane == 4:
        desired = EXIT_RAMP_FTPS
    elif lane == 1:
        until_exit = cars[slot].exit_at * SEGMENT_FT + EXIT_START_FT - x
        if until_exit < 350.0 and desired > RAMP_FTPS - 1.0:
            desired = RAMP_FTPS - 1.0
    if passing and desired > PASSING_FTPS:
        desired = PASSING_FTPS
    # Drivers anticipate the mean gap of the next second at their current speed, and the leader's
    # new speed. Otherwise a step of one second would act as a reaction time of one second.
    gap = 0.5 * (leader_old_x + leader_new_x - v) - VEHICLE_FT - x
    acceleration = idm(v, desired, cars[slot].headway, gap, v - leader_new_v)
    acceleration = min(acceleration, cars[slot].ease)
    acceleration = max(acceleration, -HARDEST_BRAKING)
    new_v = v + acceleration
    if new_v <= 0.0:
        # Stops within the second.
        new_x = x + (v * v / (-2.0 * acceleration) if v > 0.0 else 0.0)
        new_v = 0.0
    else:
        if (lane == 0 or lane == 4) and new_v > RAMP_FTPS:
            new_v = RAMP_FTPS
        new_x = x + 0.5 * (v + new_v)
    limit = leader_new_x - VEHICLE_FT - SMALLEST_GAP_FT
    if new_x > limit:
        new_x = max(x, limit)
        new_v = min(new_v, new_x - x)
    return new_x, new_v


@xs.compiled
def obstacle(lane, segment):
    """The x of the standing obstacle that ends a lane: the ramp's end, or that of the road."""
    if lane == 0:
        return segment * SEGMENT_FT + ENTRY_END_FT + VEHICLE_FT + SMALLEST_GAP_FT
    return (SEGMENTS - 1) * SEGMENT_FT + DIVERGE_END_FT + VEHICLE_FT + SMALLEST_GAP_FT


@xs.compiled
def move_lane(road, t, d, lane, out, row):
    """Report and move vehicles of a lane, foremost first; returns the next free row of `out`."""
    cars, order, count = road.cars, road.order[d, lane], road.counts[d, lane]
    ramp = lane == 0 or lane == 4
    wrecks = 0 if ramp else find_wrecks(road.accidents, d, road.wrecks)
    leader, leader_segment = -1, -1
    old_x, new_x, new_v = NOBODY_FT, NOBODY_FT, 0.0
    if not ramp:
        old_x = new_x = obstacle(lane, 0)
    write = 0
    for i in range(count):
        slot = order[i]
        if cars[slot].report_at == t:
            write_report(cars, road.first_report, road.last_report, t, d, lane, slot, out, row)
            row += 1
        x = cars[slot].x
        if ramp:
            segment = int(x / SEGMENT_FT)
            if segment != leader_segment:
                leader, leader_segment = -1, segment
                new_v = 0.0
                old_x = new_x = obstacle(0, segment) if lane == 0 else NOBODY_FT
        if cars[slot].doing == DRIVING:
            passing = wrecks > 0 and passes_wreck(road.wrecks, wrecks, x)
            to_x, to_v = drive(cars, slot, lane, passing, old_x, new_x, new_v)
        else:
            to_x, to_v = crash_step(cars, slot, leader, new_x, cars[leader].v)
        old_x, new_x, new_v = x, to_x, to_v
        leader = slot
        cars[slot].x, cars[slot].v = to_x, to_v
        cars[slot].ease = NOBODY_FT
        if lane == 0:
            road.ramp_tail[d, segment] = to_x
        elif lane == 4:
            if to_x >= segment * SEGMENT_FT + EXIT_END_FT:
                road.left_at[cars[slot].trip] = t + 1
                road.free[road.tally[FREE_SLOTS]] = slot
                road.tally[FREE_SLOTS] += 1
                road.tally[LEFT] += 1
                continue
        elif to_x > cars[slot].exit_at * SEGMENT_FT + DIVERGE_END_FT:
            # It missed its exit and takes the next one. The last exit cannot be missed, because
            # the road ends there.
            cars[slot].exit_at = min(cars[slot].exit_at + 1, SEGMENTS - 1)
        order[write] = slot
        write += 1
    road.counts[d, lane] = write
    return row


@xs.compiled
def advance(road, key, begin, end, out, rows_by_second):
    """Simulate the seconds [begin, end); returns the number of reports written to `out`."""
    row = 0
    for t in range(begin, end):
        before = row
        if t % SECONDS_BETWEEN_GATHERS == 0:
            gather(road)
        begin_trips(road, key, t)
        for d in range(2):
            fill_ramps(road, key, t, d)
        run_accidents(road, t)
        for d in range(2):
            change_lanes(road, t, d, 1, 4)
            if t % 2 == 0:
                change_lanes(road, t, d, 2, 1)
                change_lanes(road, t, d, 3, 2)
            else:
                change_lanes(road, t, d, 2, 3)
                change_lanes(road, t, d, 1, 2)
            change_lanes(road, t, d, 0, 1)
            road.ramp_tail[d, :] = NOBODY_FT
            for lane in range(5):
                row = move_lane(road, t, d, lane, out, row)
        rows_by_second[t - begin] = row - before
    return row
