"""Arrays of four microphones in a field, calls at known positions, and the recordings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from detectaudio.recording import NOISE, RATE_HZ, SOUND_M_S, SQUARE_M, Recording, delayed, noise
from detectaudio.recording import call as animal_call

from xstream.errors import InputError

__all__ = ["Call", "Scene", "generate"]

#: Arrays are on a circle of this radius, and calls inside it.
FIELD_M = 25.0
#: Calls are far enough apart not to overlap at any array.
APART_S = 1.2


@dataclass(frozen=True, slots=True)
class Call:
    """A call: its time in seconds and its position in metres."""

    second: float
    x_m: float
    y_m: float


@dataclass(frozen=True, eq=False)
class Scene:
    """The recordings, positions and headings of the arrays, and the known calls."""

    recordings: tuple[Recording, ...]
    #: x and y of each array's centre in metres, and its heading, anticlockwise from the x axis.
    places_m: npt.NDArray[np.float64]
    headings_rad: npt.NDArray[np.float64]
    calls: tuple[Call, ...] = ()

    @property
    def rate_hz(self) -> float:
        """Samples per second of every channel."""
        return self.recordings[0].rate_hz


def microphones(place_m: npt.NDArray[np.float64], heading_rad: float) -> npt.NDArray[np.float64]:
    """Return the positions of the four microphones of an array."""
    cos, sin = np.cos(heading_rad), np.sin(heading_rad)
    turn = np.array([[cos, -sin], [sin, cos]])
    return np.asarray(place_m + SQUARE_M @ turn.T)


def generate(
    arrays: int = 4, calls: int = 6, snr_db: float = 30.0, seed: int = 1, clock_error_s: float = 0.0
) -> Scene:
    """Generate a field with arrays and calls; `snr_db` is that of a call at 10 m.

    >>> scene = generate(arrays=3, calls=2)
    >>> len(scene.recordings), len(scene.recordings[0].channels), len(scene.calls)
    (3, 4, 2)
    """
    if not 2 <= arrays <= 16:
        raise InputError(f"arrays must be from 2 to 16, not {arrays}")
    if calls < 0:
        raise InputError(f"there cannot be {calls} calls")
    rng = np.random.default_rng(seed)
    around = 2 * np.pi * (np.arange(arrays) + rng.uniform(-0.15, 0.15, arrays)) / arrays
    places = FIELD_M * np.stack([np.cos(around), np.sin(around)], axis=1)
    headings = rng.uniform(-np.pi, np.pi, arrays)
    samples = round((0.6 + APART_S * (calls + 1)) * RATE_HZ) // 4096 * 4096
    channels = [[noise(rng, samples, RATE_HZ) for _ in range(4)] for _ in range(arrays)]
    late = rng.uniform(-clock_error_s, clock_error_s, arrays)
    known = []
    for number in range(calls):
        second = 0.6 + APART_S * (number + float(rng.uniform(0.0, 0.3)))
        radius, angle = 0.7 * FIELD_M * np.sqrt(rng.random()), rng.uniform(-np.pi, np.pi)
        place = radius * np.array([np.cos(angle), np.sin(angle)])
        sound = animal_call(rng, RATE_HZ) * NOISE * 10 ** (snr_db / 20)
        for array in range(arrays):
            at = microphones(places[array], float(headings[array]))
            away_m = np.sqrt(((at - place) ** 2).sum(axis=1))
            for channel, distance_m in zip(channels[array], away_m, strict=True):
                arrival = (second + late[array] + distance_m / SOUND_M_S) * RATE_HZ
                whole = int(arrival)
                heard = delayed(sound * 10.0 / max(float(distance_m), 1.0), 64 + arrival - whole)
                channel[whole - 64 : whole - 64 + len(heard)] += heard
        known.append(Call(second, float(place[0]), float(place[1])))
    recordings = tuple(
        Recording(tuple(channel.astype(np.float32) for channel in each), RATE_HZ)
        for each in channels
    )
    return Scene(recordings, places, headings, tuple(known))
