"""The bearing of an event at one array, and the intersection of bearings."""

import math

import numba
import numpy as np

import xstream as xs

#: Largest lag of a pair of microphones in samples: 17 cm of sound and a margin.
MAX_LAG = 28
MICROPHONES = 4
#: Bearings with a larger mean distance from their intersection do not belong to one call.
MOST_OFF_M = 0.5


@numba.njit(fastmath={"reassoc", "contract"})
def product(a, b, lag):
    """Return the sum of a[i] * b[i + lag] over the indices of both."""
    total = np.float32(0.0)
    first, stop = max(0, -lag), min(len(a), len(b) - lag)
    for i in range(first, stop):
        total += a[i] * b[i + lag]
    return total


@numba.njit
def high_passed(samples):
    """Return differences of adjacent samples, which suppresses slow wind."""
    out = np.empty(len(samples) - 1, np.float32)
    for i in range(len(out)):
        out[i] = samples[i + 1] - samples[i]
    return out


@numba.njit
def delay(a, b, scores):
    """Return the fractional delay of b against a in samples, and their correlation."""
    best = 0
    for lag in range(-MAX_LAG, MAX_LAG + 1):
        scores[lag + MAX_LAG] = product(a, b, lag)
        if scores[lag + MAX_LAG] > scores[best]:
            best = lag + MAX_LAG
    lag = float(best - MAX_LAG)
    if 0 < best < 2 * MAX_LAG:  # the maximum of a parabola through three points
        left, top, right = scores[best - 1], scores[best], scores[best + 1]
        bend = left - 2 * top + right
        if bend < 0:
            lag += 0.5 * (left - right) / bend
    size = math.sqrt(max(product(a, a, 0) * product(b, b, 0), 1e-30))
    return lag, scores[best] / size


@xs.kernel(out={"start": int, "bearing_rad": float, "alike": float})
def bearing(a, b, c, d, x_m, y_m, heading_rad, metres_a_sample, out):
    """Return the direction of the plane wave that fits the delays of all six pairs best."""
    heard = (high_passed(a), high_passed(b), high_passed(c), high_passed(d))
    scores = np.empty(2 * MAX_LAG + 1, np.float32)
    xx = xy = yy = xd = yd = alike = 0.0
    for i in range(MICROPHONES):
        for j in range(i + 1, MICROPHONES):
            lag, weight = delay(heard[i], heard[j], scores)
            weight = max(weight, 0.0) ** 2
            # The wave comes from direction u and reaches j later by (p_i - p_j) . u / speed.
            dx, dy, ahead_m = x_m[i] - x_m[j], y_m[i] - y_m[j], lag * metres_a_sample
            xx += weight * dx * dx
            xy += weight * dx * dy
            yy += weight * dy * dy
            xd += weight * dx * ahead_m
            yd += weight * dy * ahead_m
            alike += weight / 6
    determinant = xx * yy - xy * xy
    if determinant <= 0.0:
        return
    ux, uy = (xd * yy - yd * xy) / determinant, (yd * xx - xd * xy) / determinant
    angle = math.atan2(uy, ux) + heading_rad
    out.emit(out.start, math.atan2(math.sin(angle), math.cos(angle)), alike)


# -- intersection of bearings ----------------------------------------------------------------
# state.groups: bearings that may belong to one call, one row per group: its time, their number,
# then a bearing and a weight for each array (weight 0: none yet).

GROUP_TIME, GROUP_COUNT, GROUP_HEAD = 0, 1, 2


@numba.njit
def crossing(group, places_x, places_y):
    """Return the position nearest to all bearings of a group, and their RMS distance from it."""
    xx = xy = yy = xd = yd = weights = 0.0
    for i in range(len(places_x)):
        angle, weight = group[GROUP_HEAD + 2 * i], group[GROUP_HEAD + 2 * i + 1]
        nx, ny = -math.sin(angle), math.cos(angle)
        along = nx * places_x[i] + ny * places_y[i]
        xx += weight * nx * nx
        xy += weight * nx * ny
        yy += weight * ny * ny
        xd += weight * nx * along
        yd += weight * ny * along
        weights += weight
    determinant = xx * yy - xy * xy
    if determinant < 1e-6 * weights * weights:  # parallel: no intersection
        return math.nan, math.nan, math.nan
    x, y = (xd * yy - yd * xy) / determinant, (yd * xx - xd * xy) / determinant
    missed = 0.0
    for i in range(len(places_x)):
        angle, weight = group[GROUP_HEAD + 2 * i], group[GROUP_HEAD + 2 * i + 1]
        off = -math.sin(angle) * (x - places_x[i]) + math.cos(angle) * (y - places_y[i])
        missed += weight * off * off
    return x, y, math.sqrt(missed / weights)


@numba.njit
def without_the_odd_one(group, places_x, places_y, most_off_m):
    """Return the intersection, without one array whose bearing does not fit the others, if any.

    A call of one pitch fits a pair of microphones at several delays, and a wrong one may be chosen.
    """
    x, y, off = crossing(group, places_x, places_y)
    if group[GROUP_COUNT] < 4 or off <= most_off_m:
        return x, y, off, int(group[GROUP_COUNT])
    arrays = int(group[GROUP_COUNT])
    for i in range(len(places_x)):
        weight = group[GROUP_HEAD + 2 * i + 1]
        if weight > 0.0:
            group[GROUP_HEAD + 2 * i + 1] = 0.0
            less_x, less_y, less_off = crossing(group, places_x, places_y)
            group[GROUP_HEAD + 2 * i + 1] = weight
            if less_off < off:
                x, y, off, arrays = less_x, less_y, less_off, int(group[GROUP_COUNT]) - 1
    return x, y, off, arrays


@numba.njit
def tell(group, places_x, places_y, least, out):
    if group[GROUP_COUNT] >= least:
        x, y, off, arrays = without_the_odd_one(group, places_x, places_y, MOST_OFF_M)
        if not math.isnan(x):
            out.emit(int(group[GROUP_TIME]), x, y, off, arrays)


@xs.kernel(
    state={"groups": np.zeros(64 * 34), "count": np.zeros(1, np.int64)},
    out={"start": int, "x_m": float, "y_m": float, "off_m": float, "arrays": int},
    at_end=True,
)
def cross(stream, start, bearing_rad, alike, places_x, places_y, near, hold, least, state, out):
    """Group bearings within `near` samples to one call; emit it when all arrays have heard it.

    A call that an array does not hear is emitted when another one comes `hold` samples later, or at
    the end, if at least `least` arrays heard it.
    """
    groups, count = state.groups, state.count
    row = GROUP_HEAD + 2 * len(places_x)
    if out.ended:
        for g in range(count[0]):
            tell(groups[g * row : (g + 1) * row], places_x, places_y, least, out)
        count[0] = 0
        return
    found = -1
    for g in range(count[0]):
        free = groups[g * row + GROUP_HEAD + 2 * stream + 1] == 0.0
        if free and abs(groups[g * row + GROUP_TIME] - start) < near:
            found = g
            break
    if found < 0:
        found = count[0]
        count[0] += 1
        if count[0] * row > len(groups):
            groups = xs.grow(state.groups, 2 * len(groups))
        for k in range(row):
            groups[found * row + k] = 0.0
        groups[found * row + GROUP_TIME] = start
    at = found * row
    groups[at + GROUP_TIME] = min(groups[at + GROUP_TIME], float(start))
    groups[at + GROUP_COUNT] += 1
    groups[at + GROUP_HEAD + 2 * stream] = bearing_rad
    groups[at + GROUP_HEAD + 2 * stream + 1] = max(alike, 1e-6)
    kept = 0
    for g in range(count[0]):
        full = groups[g * row + GROUP_COUNT] == len(places_x)
        if full or start - groups[g * row + GROUP_TIME] > hold:
            tell(groups[g * row : (g + 1) * row], places_x, places_y, least, out)
            continue
        for k in range(row):
            groups[kept * row + k] = groups[g * row + k]
        kept += 1
    count[0] = kept
