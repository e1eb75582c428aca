"""One day of SegmentHistory and TollHistory."""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.traffic._kernels_cars import mix, unit

MINUTES, SEGMENTS, DIRECTIONS = 1440, 100, 2
DAY, MIN, DIR, SEG, LAV, CNT, TOLL = range(7)
TOLL_VID, TOLL_DAY, TOLL_TOLLS = range(3)
# Variation of a minute of a segment from day to day.
CNT_SPREAD, LAV_SPREAD_MPH = 0.12, 4.0
SALT_SEGMENT, SALT_COMMUTER, SALT_TRIP = 0x5E6, 0xC0, 0x7219
MORNING_MINUTE, EVENING_MINUTE, DEPARTURE_SPREAD = 450, 1020, 180
STAY_AT_HOME_SHARE = 0.25
DRAW_ENTRY, DRAW_EXIT, DRAW_TIME, DRAW_OFTEN = 0, 1, 2, 3


@xs.compiled
def toll(lav, cnt):
    """The toll of docs/linear-road-rules.md, section 2.7, where there is no accident."""
    if lav < 40 and cnt > 50:
        return 2 * (cnt - 50) * (cnt - 50)
    return 0


@xs.compiled
def fill_day(out, day, key, levels, lav_profile, cnt_profile):
    """All rows of one day of SegmentHistory; `levels` are the simulated minutes it resembles."""
    stream = mix(mix(key, SALT_SEGMENT), day)
    row = 0
    for minute in range(MINUTES):
        like = levels[minute]
        for d in range(DIRECTIONS):
            for segment in range(SEGMENTS):
                noise = mix(stream, row)
                # Two independent uniform numbers from one hash.
                u = np.float64(noise >> np.uint64(40)) / 16777216.0 - 0.5
                w = np.float64(noise & np.uint64(0xFFFFFF)) / 16777216.0 - 0.5
                usual = cnt_profile[like, d, segment]
                cnt = np.int32(usual * (1.0 + 2.0 * CNT_SPREAD * u) + 0.5)
                lav = np.int32(lav_profile[like, d, segment] + 2.0 * LAV_SPREAD_MPH * w + 0.5)
                lav = min(max(lav, 1), 100) if cnt > 0 else np.int32(0)
                out[DAY, row] = day
                out[MIN, row] = minute + 1
                out[DIR, row] = d
                out[SEG, row] = segment
                out[LAV, row] = lav
                out[CNT, row] = cnt
                out[TOLL, row] = toll(lav, cnt)
                row += 1


@xs.compiled
def draw_segment(u, shares):
    """The segment at a cumulative share."""
    low, high = 0, SEGMENTS - 1
    while low < high:
        middle = (low + high) // 2
        if shares[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@xs.compiled(error_model="numpy")
def drive_and_pay(segments, entry, leave, minute):
    """Tolls of a journey that starts at a minute, by that day's SegmentHistory."""
    d = 0 if leave > entry else 1
    step = 1 if d == 0 else -1
    clock = np.float64(minute)
    paid = 0
    segment = entry
    while segment != leave:
        row = ((int(clock) % MINUTES) * DIRECTIONS + d) * SEGMENTS + segment
        paid += segments[TOLL, row]
        clock += 60.0 / max(segments[LAV, row], 5)
        segment += step
    return paid


@xs.compiled
def fill_tolls(out, day, key, vids, exit_shares, segments):
    """The toll that each vehicle paid that day for its usual journey, near its usual hour."""
    commuters = mix(key, SALT_COMMUTER)
    today = mix(mix(key, SALT_TRIP), day)
    for i in range(vids.shape[0]):
        habits = mix(commuters, np.int64(vids[i]))
        entry = np.int64(unit(habits, DRAW_ENTRY) * SEGMENTS)
        leave = draw_segment(unit(habits, DRAW_EXIT), exit_shares)
        rush = MORNING_MINUTE if unit(habits, DRAW_OFTEN) < 0.5 else EVENING_MINUTE
        spread = unit(habits, DRAW_TIME) - 0.5
        chance = mix(today, np.int64(vids[i]))
        minute = rush + np.int64(DEPARTURE_SPREAD * spread) + np.int64(unit(chance, 0) * 15)
        out[TOLL_VID, i] = vids[i]
        out[TOLL_DAY, i] = day
        out[TOLL_TOLLS, i] = 0
        if unit(chance, 1) >= STAY_AT_HOME_SHARE:
            out[TOLL_TOLLS, i] = drive_and_pay(segments, entry, leave, minute)
