"""Lane changes: onto the road, over to the exit, around a wreck, or because another lane is faster.

Pairs of lanes are processed one after the other, from the front to the back, so that no two
vehicles can take the same gap in the same second.
"""

from __future__ import annotations

import xstream as xs
from linearroad.traffic._kernels_cars import (
    ACCIDENT_DIR,
    ACCIDENT_LANE,
    ACCIDENT_STATE,
    ACCIDENT_X,
    COMFORTABLE_BRAKING,
    DIVERGE_END_FT,
    DRIVING,
    ENTRY_END_FT,
    EXIT_START_FT,
    MERGE_START_FT,
    RAMP_FTPS,
    REAR_ENDING,
    SEGMENT_FT,
    SMALLEST_GAP_FT,
    STANDING,
    VEHICLE_FT,
    insert,
    toward,
)

# MOBIL (Kesting, Treiber, Helbing 2007).
POLITENESS = 0.2
CHANGE_THRESHOLD = 0.4
SAFE_BRAKING = 10.0
SAFE_BRAKING_FORCED = 16.0
SHORTEST_HEADWAY_S = 0.1
HOPELESS = 1e9
# Through traffic avoids the lane next to the ramps.
RAMP_LANE_MALUS = 2.0
SECONDS_BETWEEN_CHANGES = 10

# Where an exit, a wreck or the end of a ramp forces a change, and where drivers ask for a gap.
EXIT_FORCES_FT = 2600.0
EXIT_KEEPS_RIGHT_FT = 3000.0
URGENT_FT = 1500.0
WRECK_SEEN_FT = 2500.0
LET_IN_FT = 400.0
STUCK_FTPS = 20.0

FREE_CHOICE, FORCED, FORBIDDEN = 0, 1, 2

# What runs for every vehicle is inlined: a call counts references to the array of cars, which costs
# more than the work.


@xs.compiled
def wreck_ahead(accidents, d, lane, x):
    """The position of a wreck in this lane that a driver at x can see; -1 without one."""
    for k in range(accidents.shape[0]):
        accident = accidents[k]
        if (
            accident[ACCIDENT_STATE] == STANDING
            and accident[ACCIDENT_DIR] == d
            and accident[ACCIDENT_LANE] == lane
            and 0.0 < accident[ACCIDENT_X] - x < WRECK_SEEN_FT
        ):
            return accident[ACCIDENT_X]
    return -1.0


@xs.compiled
def any_wreck(accidents, d, lane):
    """Whether the lane is blocked anywhere."""
    for k in range(accidents.shape[0]):
        accident = accidents[k]
        if (
            accident[ACCIDENT_STATE] == STANDING
            and accident[ACCIDENT_DIR] == d
            and accident[ACCIDENT_LANE] == lane
        ):
            return True
    return False


@xs.compiled
def offset(x):
    """The distance from the beginning of the segment; much faster than a float modulus."""
    return x - int(x * (1.0 / SEGMENT_FT)) * SEGMENT_FT


@xs.compiled(error_model="numpy")
def braking_needed(cars, rear, front):
    """The constant braking with which `rear` avoids hitting `front`; huge without a gap."""
    gap = cars[front].x - VEHICLE_FT - cars[rear].x - SMALLEST_GAP_FT
    if gap <= SHORTEST_HEADWAY_S * cars[rear].v:
        return HOPELESS
    closing = max(cars[rear].v - cars[front].v, 0.0)
    return closing * closing / (2.0 * gap)


@xs.compiled(inline="always")
def fits(cars, slot, leader, follower, braking):
    """Whether there is room between two vehicles, without braking harder than `braking`."""
    if leader >= 0 and braking_needed(cars, slot, leader) > braking:
        return False
    if follower < 0:
        return True
    if cars[follower].doing == REAR_ENDING:
        return False
    return braking_needed(cars, follower, slot) <= braking


@xs.compiled(inline="always")
def let_in(cars, slot, leader, follower):
    """Courtesy: the follower opens a gap, and the vehicle that changes lane follows the leader."""
    if follower >= 0 and cars[follower].doing == DRIVING:
        wish = max(toward(cars, follower, slot), -COMFORTABLE_BRAKING)
        cars[follower].ease = min(cars[follower].ease, wish)
    if leader >= 0:
        wish = max(toward(cars, slot, leader), -COMFORTABLE_BRAKING)
        cars[slot].ease = min(cars[slot].ease, wish)


@xs.compiled(inline="always")
def pays(cars, slot, ahead, leader, follower, bonus):
    """MOBIL: the driver's own gain outweighs what the new follower loses."""
    gain = toward(cars, slot, leader) - toward(cars, slot, ahead) + bonus
    if gain <= CHANGE_THRESHOLD:
        return False
    if follower < 0:
        return True
    loss = toward(cars, follower, leader) - toward(cars, follower, slot)
    return gain - POLITENESS * loss > CHANGE_THRESHOLD


FREE_CHOICE, FORCED, FORBIDDEN = 0, 1, 2

# What runs for every vehicle is inlined: a call counts references to the array of cars, which costs
# more than the work.


@xs.compiled(inline="always")
def motive(cars, accidents, t, d, lane, to, slot, blocked, to_blocked):
    """Whether this driver must, may or must not change from `lane` to `to`."""
    x = cars[slot].x
    if cars[slot].doing != DRIVING:
        return FORBIDDEN
    exit_ft = cars[slot].exit_at * SEGMENT_FT
    if lane == 0:
        return FORCED if offset(x) >= MERGE_START_FT else FORBIDDEN
    if to == 4:
        here = exit_ft + EXIT_START_FT <= x <= exit_ft + DIVERGE_END_FT
        return FORCED if here and cars[slot].v <= RAMP_FTPS else FORBIDDEN
    until_exit = exit_ft + EXIT_START_FT - x
    if blocked and wreck_ahead(accidents, d, lane, x) >= 0.0:
        return FORCED
    if to < lane and until_exit < EXIT_FORCES_FT * (lane - 1):
        return FORCED
    if to > lane and until_exit < EXIT_KEEPS_RIGHT_FT * lane:
        return FORBIDDEN
    if to_blocked and wreck_ahead(accidents, d, to, x) >= 0.0:
        return FORBIDDEN
    if cars[slot].v > STUCK_FTPS and (t // 2 + cars[slot].trip) % 5 != 0:
        return FORBIDDEN
    if t - cars[slot].changed_at < SECONDS_BETWEEN_CHANGES:
        return FORBIDDEN
    return FREE_CHOICE


@xs.compiled(inline="always")
def urgent(cars, lane, to, slot):
    """Whether a driver who must change lane now asks the others for a gap."""
    x = cars[slot].x
    if lane == 0:
        return offset(x) > ENTRY_END_FT - LET_IN_FT
    if to == 4:
        return False
    return cars[slot].v < 15.0 or (
        cars[slot].exit_at * SEGMENT_FT + DIVERGE_END_FT - x < URGENT_FT * (lane - 1)
    )


@xs.compiled
def change_lanes(road, t, d, lane, to):
    """The vehicles in `lane` that must or want to change to lane `to`, foremost first."""
    cars, fresh = road.cars, road.fresh
    order, count = road.order[d, lane], road.counts[d, lane]
    target, target_count = road.order[d, to], road.counts[d, to]
    blocked = lane > 0 and to < 4 and any_wreck(road.accidents, d, lane)
    to_blocked = lane > 0 and to < 4 and any_wreck(road.accidents, d, to)
    bonus = RAMP_LANE_MALUS if lane == 1 else (-RAMP_LANE_MALUS if to == 1 else 0.0)
    j = 0
    n = 0
    for i in range(count):
        slot = order[i]
        x = cars[slot].x
        why = motive(cars, road.accidents, t, d, lane, to, slot, blocked, to_blocked)
        if why == FORBIDDEN:
            continue
        while j < target_count and cars[target[j]].x >= x:
            j += 1
        leader = target[j - 1] if j > 0 else -1
        if n > 0 and (leader < 0 or cars[fresh[n - 1]].x < cars[leader].x):
            leader = fresh[n - 1]
        follower = target[j] if j < target_count else -1
        if why == FORCED:
            accept = fits(cars, slot, leader, follower, SAFE_BRAKING_FORCED)
            if not accept and urgent(cars, lane, to, slot):
                let_in(cars, slot, leader, follower)
        else:
            ahead = order[i - 1] if i > 0 else -1
            wants = pays(cars, slot, ahead, leader, follower, bonus)
            accept = wants and fits(cars, slot, leader, follower, SAFE_BRAKING)
            if wants and not accept and cars[slot].v < STUCK_FTPS:
                let_in(cars, slot, -1, follower)
        if accept:
            road.movers[n] = i
            fresh[n] = slot
            cars[slot].changed_at = t
            n += 1
    if n > 0:
        leave_lane(order, count, road.movers, n)
        road.counts[d, lane] -= n
        insert(cars, target, target_count, fresh, n)
        road.counts[d, to] += n


@xs.compiled
def leave_lane(order, count, movers, n):
    """Close the gaps that movers (places, ascending) leave in their lane."""
    k = 0
    write = movers[0]
    for i in range(movers[0], count):
        if k < n and movers[k] == i:
            k += 1
        else:
            order[write] = order[i]
            write += 1
