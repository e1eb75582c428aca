"""One pass over an expressway's stream by the `paper` rules: notifications, alerts, speeds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import xstream as xs

DIRECTIONS, SEGMENTS, ROAD_FT = 2, 100, 528_000
CELL_S, CELL_FT = 30, 1320
REPORTED_EVERY_S = 30
STOPPED_REPORTS = 4
ACCIDENT_REACH = 5
REPORTS, NOTIFICATIONS, PAID, ALERTS, RAMP, FINISHED, MINUTE = range(7)
TALLIES = 7
LANES = 5


# Passing a tuple of arrays to a function counts references to each array, so functions that are
# called for every row are inlined.


class Survey(NamedTuple):
    """State and results of the pass; minutes are M(t), from 1."""

    last_time: np.ndarray  # by VID, as the arrays below
    last_seg: np.ndarray
    last_place: np.ndarray  # (dir, lane, pos) in one number
    last_spd: np.ndarray
    equal_reports: np.ndarray  # consecutive reports from the same place
    speed_twice: np.ndarray  # [minute, dir, seg]: twice the sum of the vehicles' mean speeds
    vehicles: np.ndarray  # [minute, dir, seg]: distinct vehicles
    accident: np.ndarray  # [minute, dir, seg]: 1 in an accident minute
    lav: np.ndarray  # [dir, seg] of the current minute
    stop_time: np.ndarray  # [dir, lane - 1, pos]: the last report of a stopped vehicle there
    stop_vid: np.ndarray
    rate: np.ndarray  # reports by second
    queries: np.ndarray  # by type
    cell_speed: np.ndarray  # [dir, time, place]: sum of speeds in the travel lanes
    cell_reports: np.ndarray
    lane_speed: np.ndarray  # [lane]: sum of speeds
    lane_reports: np.ndarray
    tally: np.ndarray


@xs.compiled(error_model="numpy")
def latest_average(survey, minute):
    """LAV of every segment for a minute: the mean of Avgs over the five minutes before."""
    for d in range(DIRECTIONS):
        for segment in range(SEGMENTS):
            total, minutes = 0.0, 0
            for m in range(max(minute - 5, 1), minute):
                n = survey.vehicles[m, d, segment]
                if n > 0:
                    total += survey.speed_twice[m, d, segment] / (2.0 * n)
                    minutes += 1
            average = -1
            if minutes > 0:
                average = int(np.floor(total / minutes + 1e-9))
            survey.lav[d, segment] = average


@xs.compiled(inline="always")
def accident_ahead(survey, minute, d, segment):
    """Whether an accident minute lies within five segments downstream."""
    for ahead in range(ACCIDENT_REACH):
        place = segment + ahead if d == 0 else segment - ahead
        if 0 <= place < SEGMENTS and survey.accident[minute, d, place] == 1:
            return True
    return False


@xs.compiled(inline="always")
def note_stopped(survey, t, vid, d, lane, pos):
    """Record a stopped vehicle for 30 s; two of them at the same place are an accident."""
    other, when = survey.stop_vid[d, lane - 1, pos], survey.stop_time[d, lane - 1, pos]
    if other >= 0 and other != vid and when + REPORTED_EVERY_S > t:
        survey.accident[t // 60 + 1, d, pos // 5280] = 1
        survey.accident[(when + REPORTED_EVERY_S - 1) // 60 + 1, d, pos // 5280] = 1
    survey.stop_vid[d, lane - 1, pos] = vid
    survey.stop_time[d, lane - 1, pos] = t


@xs.compiled(inline="always")
def notify(survey, minute, d, segment):
    """Count one notification, and an alert if an accident is ahead."""
    survey.tally[NOTIFICATIONS] += 1
    if accident_ahead(survey, minute - 1, d, segment):
        survey.tally[ALERTS] += 1
    elif 0 <= survey.lav[d, segment] < 40 and survey.vehicles[minute - 1, d, segment] > 50:
        survey.tally[PAID] += 1


@xs.compiled(inline="always")
def take_report(survey, t, vid, spd, lane, d, seg, pos):
    """Process one position report."""
    minute = t // 60 + 1
    same_trip = survey.last_time[vid] == t - REPORTED_EVERY_S
    place = (d * LANES + lane) * ROAD_FT + pos
    if same_trip and survey.last_place[vid] == place:
        survey.equal_reports[vid] += 1
    else:
        survey.equal_reports[vid] = 1
    if 1 <= lane <= 3 and survey.equal_reports[vid] >= STOPPED_REPORTS:
        note_stopped(survey, t, vid, d, lane, pos)
    new_segment = not same_trip or survey.last_seg[vid] != seg
    if lane != 4 and new_segment:
        notify(survey, minute, d, seg)
    if not new_segment and survey.last_time[vid] // 60 + 1 == minute:
        # The second report of the minute: the vehicle's mean replaces its first speed.
        survey.speed_twice[minute, d, seg] += spd - survey.last_spd[vid]
    else:
        survey.speed_twice[minute, d, seg] += 2 * spd
        survey.vehicles[minute, d, seg] += 1
    survey.last_time[vid] = t
    survey.last_seg[vid] = seg
    survey.last_place[vid] = place
    survey.last_spd[vid] = spd


@xs.compiled
def survey_rows(survey, kind, time, vid, spd, lane, direction, seg, pos):
    """Process more rows of the stream, in order."""
    for i in range(time.shape[0]):
        t = time[i]
        if kind[i] != 0:
            survey.queries[kind[i]] += 1
            continue
        while survey.tally[MINUTE] < t // 60 + 1:
            survey.tally[MINUTE] += 1
            latest_average(survey, survey.tally[MINUTE])
        take_report(survey, t, vid[i], spd[i], lane[i], direction[i], seg[i], pos[i])
        survey.rate[t] += 1
        survey.tally[REPORTS] += 1
        survey.lane_speed[lane[i]] += spd[i]
        survey.lane_reports[lane[i]] += 1
        if 1 <= lane[i] <= 3:
            survey.cell_speed[direction[i], t // CELL_S, pos[i] // CELL_FT] += spd[i]
            survey.cell_reports[direction[i], t // CELL_S, pos[i] // CELL_FT] += 1
