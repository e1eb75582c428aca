"""The input of the benchmarks: a recording comparable to the paper's (section IV.A), or a file.

The paper's file, nine seconds of a speaker who counts from one to five at 44.1 kHz, is not
available. `counting_aloud` generates a similar one: five words of voiced and unvoiced sounds with
pauses between them, always with the same samples.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream.console import require_package
from xstream.errors import InputError

__all__ = [
    "RATE_HZ", "counting_aloud", "read_recording", "read_sound", "tiled", "whole_windows",
]  # fmt: skip
#: Frames that are read from a sound file at a time; Ctrl-C is handled in between.
_FRAMES = 1 << 20

RATE_HZ = 44_100.0
_SECONDS = 9.0
#: Sounds of each word: (seconds, voice, hiss, three formants in Hz).
_WORDS = (
    ((0.10, 0.5, 0.0, (320, 700, 2300)), (0.22, 1.0, 0.0, (680, 1150, 2450)),
     (0.16, 0.5, 0.0, (280, 1500, 2400))),
    ((0.06, 0.0, 0.6, (3000, 4200, 6000)), (0.34, 0.9, 0.0, (310, 900, 2250))),
    ((0.14, 0.0, 0.2, (1500, 5000, 7000)), (0.08, 0.6, 0.0, (420, 1250, 1700)),
     (0.30, 1.0, 0.0, (280, 2250, 2950))),
    ((0.15, 0.0, 0.2, (1200, 4500, 7500)), (0.36, 1.0, 0.0, (520, 850, 2400))),
    ((0.14, 0.0, 0.2, (1200, 4500, 7500)), (0.20, 1.0, 0.0, (740, 1250, 2550)),
     (0.12, 0.9, 0.0, (400, 2000, 2600)), (0.12, 0.4, 0.1, (280, 1100, 2300))),
)  # fmt: skip
_PITCH_HZ = 118.0


def _sound(
    seconds: float, voice: float, hiss: float, formants: tuple[int, ...], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    count = round(seconds * RATE_HZ)
    time = np.arange(count) / RATE_HZ
    sound = np.zeros(count)
    pitch = _PITCH_HZ * (1.0 + 0.04 * np.sin(2 * np.pi * 3.1 * time))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE_HZ
    for harmonic in range(1, 36):
        near = ((harmonic * _PITCH_HZ - f) / (90.0 + 0.04 * f) for f in formants)
        level = sum(weight / (1.0 + x * x) for weight, x in zip((1.0, 0.6, 0.3), near, strict=True))
        sound += voice * 0.12 * level * np.sin(harmonic * phase + harmonic * harmonic)
    if hiss:
        white = np.fft.rfft(rng.standard_normal(count))
        frequency = np.fft.rfftfreq(count, 1 / RATE_HZ)
        band = sum(np.exp(-(((frequency - f) / 900.0) ** 2)) for f in formants)
        sound += hiss * np.fft.irfft(white * band, count)
    ramp = np.minimum(1.0, np.minimum(time, time[::-1]) / 0.02)
    return sound * ramp


@lru_cache(maxsize=1)
def counting_aloud() -> npt.NDArray[np.float32]:
    """Return nine seconds at 44.1 kHz of a synthetic voice that counts from one to five.

    >>> recording = counting_aloud()
    >>> recording.dtype, len(recording)
    (dtype('float32'), 396900)
    """
    rng = np.random.default_rng(5)
    recording = 0.0008 * rng.standard_normal(round(_SECONDS * RATE_HZ))
    for i, word in enumerate(_WORDS):
        at = round((0.6 + 1.72 * i) * RATE_HZ)
        for sound in word:
            samples = _sound(*sound, rng)
            recording[at : at + len(samples)] += samples
            at += len(samples)
    quiet = recording.astype(np.float32)
    quiet.flags.writeable = False
    return quiet


def read_recording(path: Path | None) -> tuple[npt.NDArray[np.float32], float]:
    """Return samples and rate of the first channel of a sound file, or of `counting_aloud`."""
    if path is None:
        return counting_aloud(), RATE_HZ
    samples, rate_hz = read_sound(path)
    if not len(samples):
        raise InputError(f"{path} has no samples")
    return np.ascontiguousarray(samples[:, 0]), rate_hz


def read_sound(path: Path) -> tuple[npt.NDArray[np.float32], float]:
    """Return the frames of a sound file, one column per channel, and its rate in Hz."""
    require_package("soundfile")
    import soundfile

    if not path.exists():
        raise InputError(f"{path} does not exist")
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    try:
        with soundfile.SoundFile(path) as sound:
            samples = np.zeros((sound.frames, sound.channels), np.float32)
            read = 0
            while read < len(samples):
                count = len(sound.read(out=samples[read : read + _FRAMES]))
                if not count:
                    break
                read += count
            return samples[:read], float(sound.samplerate)
    except (OSError, RuntimeError) as error:
        reason = str(error).removeprefix(f"Error opening {str(path)!r}: ")
        raise InputError(f"{path} cannot be read as a sound file: {reason}") from error


def whole_windows(samples: npt.NDArray[Any], window: int) -> npt.NDArray[Any]:
    """Cut a recording to whole windows, so that every repetition has the same windows.

    A recording shorter than one window is repeated until it fills one.
    """
    if len(samples) < window:
        return np.resize(samples, window)
    return samples[: len(samples) // window * window]


def tiled(samples: npt.NDArray[Any], megabytes: float) -> npt.NDArray[Any]:
    """Repeat a recording, a whole number of times, until it has the given size."""
    times = max(1, round(megabytes * 2**20 / samples.nbytes))
    return np.tile(samples, times)
