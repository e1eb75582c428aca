"""The query: DETECTAUDIO at every array, the bearing of each event, and their intersection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from detectaudio import Detector
from detectaudio import declare as detect
from detectaudio.query import SEGMENT, sources
from detectaudio.recording import SOUND_M_S, SQUARE_M

import xstream as xs
from localise._kernels import bearing, cross
from localise.scene import FIELD_M, Scene

__all__ = ["Located", "declare", "locate"]

#: DETECTAUDIO with large segments between its operators, the fast form.
DETECTOR = Detector().in_blocks(SEGMENT)
#: Largest time difference of a call at two arrays: travel time of the sound and of the detector.
NEAR_S = 2 * FIELD_M / SOUND_M_S + 0.1
#: A call is emitted without the missing arrays when another one comes this much later.
HOLD_S = 30.0


@dataclass(frozen=True, slots=True)
class Located:
    """A call: time at the first array, position, distance of the bearings, number of arrays."""

    second: float
    x_m: float
    y_m: float
    off_m: float
    arrays: int


def declare(
    arrays: Sequence[Sequence[xs.Stream]],
    scene: Scene,
    detector: Detector | None = None,
    least: int = 2,
) -> xs.Stream:
    """Return (start, x_m, y_m, off_m, arrays) of every call that `least` arrays have heard."""
    how, rate_hz = detector or DETECTOR, scene.rate_hz
    x_m, y_m = (np.ascontiguousarray(column) for column in SQUARE_M.T)
    bearings = [
        detect(channels, rate_hz, how).iterate(
            bearing, x_m, y_m, float(scene.headings_rad[number]), SOUND_M_S / rate_hz,
            name=f"bearing {number}",
        )
        for number, channels in enumerate(arrays)
    ]  # fmt: skip
    places = [np.ascontiguousarray(column) for column in scene.places_m.T]
    return bearings[0].union(*bearings[1:]).iterate(
        cross, *places, round(NEAR_S * rate_hz), round(HOLD_S * rate_hz), least, name="cross"
    )  # fmt: skip


def locate(
    scene: Scene,
    detector: Detector | None = None,
    scheduler: str = "df",
    memory: str = "refcount-lazy",
) -> list[Located]:
    """Return the calls of a scene in order.

    >>> from localise import generate, locate
    >>> found = locate(generate(arrays=3, calls=2, seed=5))
    >>> len(found), found[0].arrays
    (2, 3)
    """
    how = detector or DETECTOR
    query = xs.Query("localise")
    arrays = [
        sources(query, recording, label=f"array {number}, ")
        for number, recording in enumerate(scene.recordings)
    ]
    out = declare(arrays, scene, how).collect()
    rows = query.run(scheduler=scheduler, memory=memory).uninterrupted()[out]
    skipped = how.padding / scene.rate_hz
    found = [Located(row[0] / scene.rate_hz + skipped, *row[1:]) for row in rows]
    return sorted(found, key=lambda each: each.second)
