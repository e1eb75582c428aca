"""DETECTAUDIO and PIPELINE by their definitions, in numpy and plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.reference import numbers, placement

Array = npt.NDArray[Any]


def scores(samples: Array, weights: Array, window: int, block: int) -> list[float]:
    """The weighted sum of magnitudes of every window in whole blocks."""
    whole = samples[: len(samples) // block * block].astype(np.float64).reshape(-1, window)
    spectra = np.fft.rfft(whole * np.hanning(window), axis=1)
    found: list[float] = (np.abs(spectra) @ weights.astype(np.float64)).tolist()
    return found


def detectaudio(
    channels: list[Array], weights: Array, window: int, block: int, sigmas: float, alpha: float,
    startup: int, refractory: int, padding: int, listen: int = 0,
) -> list[tuple[int, list[Array]]]:  # fmt: skip
    """Where each event starts, padding and all, and its samples in every channel."""
    told = numbers.cfar(
        scores(channels[listen], weights, window, block), 0, sigmas, alpha, startup, refractory,
        padding, window, 10_000,
    )  # fmt: skip
    end = len(channels[0])
    return [(start, [c[start : min(stop, end)] for c in channels]) for start, stop in told]


def pipeline(
    samples: Array, window: int, overlap: int, level: int, guard: int, limit: float, sigmas: float
) -> list[tuple[int, float]]:
    """The fronts whose echoes are too weak."""
    leaks = []
    step = 2**level
    for start, part in placement.rewindow(samples, 0, window, -overlap, False):
        details = numbers.haar(np.asarray(part), level)[level - 1]
        peaks: list[float] = []
        rest, front_at = details, 0
        for number in range(4):
            at = int(np.argmin(rest) if number % 2 else np.argmax(rest))
            peaks.append(float(rest[at]))
            rest = rest[at:]
            if number == 0:
                front_at = at
        behind = len(details) - front_at - 1
        if front_at * step < guard or behind * step < guard:
            continue
        front = peaks[0] - peaks[1]
        if front <= sigmas * 1.2533 * float(np.abs(details).mean()):
            continue
        ratio = (peaks[2] - peaks[3]) / front
        if abs(ratio) < limit:
            leaks.append(((start // step + front_at) * step, ratio))
    return leaks
