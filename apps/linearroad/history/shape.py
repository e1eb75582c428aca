"""How full the road is over a day and a week, measured in minutes of the simulation.

The simulated stream fills an empty road in three hours. The history assigns one of these 180
minutes to every minute of a day: few vehicles at night, most of the increase in the morning, all of
it from 15:00 to 18:00 (the time of the stream itself), and little at weekends. The profile has the
state of the road in each of these minutes by segment, measured once from the simulation (`measure`;
`python -m linearroad.history.shape` writes it again).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["PROFILE_MINUTES", "day_of_week", "levels", "load_profile", "measure"]

PROFILE_MINUTES = 180
SIMULATED_DAY_OF_WEEK = 5
STREAM_BEGINS_MINUTE = 900
PROFILE_FILE = Path(__file__).with_name("profile.npz")

# (hour, share of the three-hour climb)
WEEKDAY = ((0, 0.02), (5, 0.02), (8, 0.75), (10, 0.3), (15, 0.3), (18, 1.0), (20, 0.3), (24, 0.02))
WEEKEND = ((0, 0.04), (7, 0.03), (13, 0.45), (18, 0.4), (24, 0.04))
# Monday to Sunday.
BUSY = (0.95, 0.97, 0.98, 1.0, 1.0, 0.8, 0.6)


def day_of_week(day: int) -> int:
    """The DOW of a day of history, 1 being yesterday
    (docs/linear-road-rules.md, section 5.3).

    >>> day_of_week(1), day_of_week(7), day_of_week(70)
    (4, 5, 5)
    """
    return (SIMULATED_DAY_OF_WEEK - 1 - day) % 7 + 1


def levels(dow: int, busy: float = 1.0) -> NDArray[np.int64]:
    """For each minute of a day of this DOW, the minute of the simulation that it resembles."""
    points = np.array(WEEKEND if dow >= 6 else WEEKDAY)
    minute = np.arange(1440)
    level = np.interp(minute / 60.0, points[:, 0], points[:, 1])
    if dow < 6:
        climb = (minute - STREAM_BEGINS_MINUTE) / PROFILE_MINUTES
        afternoon = (minute >= STREAM_BEGINS_MINUTE) & (climb <= 1.0)
        level = np.where(afternoon, np.maximum(0.3, climb), level)
    scaled = level * BUSY[dow - 1] * busy * PROFILE_MINUTES
    like: NDArray[np.int64] = np.clip(scaled, 0, PROFILE_MINUTES - 1).astype(np.int64)
    return like


def load_profile() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lav and Cnt of (minute, direction, segment), measured in the simulation."""
    with np.load(PROFILE_FILE) as file:
        lav, cnt = (
            np.repeat(file[name].astype(np.float64), PROFILE_MINUTES // len(file[name]), axis=0)
            for name in ("lav", "cnt")
        )
    return np.ascontiguousarray(lav), np.ascontiguousarray(cnt)


def measure(
    seeds: tuple[int, ...] = (1, 2), minutes_per_step: int = 5
) -> dict[str, NDArray[np.int16]]:
    """Measure the profile, without accidents, as means over some seeds."""
    from linearroad.traffic.simulation import Expressway, unpack

    steps = PROFILE_MINUTES // minutes_per_step
    speed, reports, vehicles = (np.zeros((steps, 2, 100)) for _ in range(3))
    for seed in seeds:
        road = Expressway(seed, 0, 60 * PROFILE_MINUTES, accidents=False)
        for minute in range(PROFILE_MINUTES):
            chunk = unpack(road.advance(60).packed)
            places = (chunk.dir * 100 + chunk.pos // 5280).astype(np.int64)
            seen = np.unique(chunk.trip.astype(np.int64) * 200 + places) % 200
            step = minute // minutes_per_step
            speed[step] += np.bincount(places, chunk.spd, 200).reshape(2, 100)
            reports[step] += np.bincount(places, minlength=200).reshape(2, 100)
            vehicles[step] += np.bincount(seen, minlength=200).reshape(2, 100)
    free_flow = 60.0
    lav = np.where(reports > 0, speed / np.maximum(reports, 1), free_flow)
    cnt = vehicles / (len(seeds) * minutes_per_step)
    return {"lav": np.rint(lav).astype(np.int16), "cnt": np.rint(cnt).astype(np.int16)}


if __name__ == "__main__":
    np.savez_compressed(PROFILE_FILE, **measure())  # type: ignore[arg-type]
