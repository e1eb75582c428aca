"""Recordings of a four-microphone array: generated with known events, or read from WAV files.

Generated recordings have amplifier noise, wind below 200 Hz, and calls that sweep over a few
kilohertz, like those of marmots and birds, and reach the microphones at different times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from xstream.bench.recording import read_sound
from xstream.console import Progress, require_package, whole_file
from xstream.errors import InputError

__all__ = ["Event", "Recording", "generate", "read_wav", "write_wav"]

RATE_HZ = 48_000.0
CHANNELS = 4
NOISE = 0.01
SOUND_M_S = 343.0
#: Microphones at the corners of a square, in metres: x and y of each.
#: Samples of noise that are generated at a time; Ctrl-C is handled in between.
BLOCK_SAMPLES = 1 << 21
SQUARE_M = np.array([[0.06, 0.06], [-0.06, 0.06], [-0.06, -0.06], [0.06, -0.06]])


@dataclass(frozen=True, slots=True)
class Event:
    """A sound in a recording, with its sample indices in the first channel."""

    start: int
    stop: int
    #: Signal-to-noise ratio at the microphone during the event.
    snr_db: float
    bearing_rad: float


@dataclass(frozen=True, eq=False)
class Recording:
    """Channels of equal length and the known events."""

    channels: tuple[npt.NDArray[np.float32], ...]
    rate_hz: float
    events: tuple[Event, ...] = ()

    @property
    def samples(self) -> int:
        """The number of samples per channel."""
        return len(self.channels[0])

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return self.samples / self.rate_hz


def call(rng: np.random.Generator, rate_hz: float) -> npt.NDArray[np.float64]:
    """Return a call of power 1: a sweep with a harmonic, faded in and out."""
    count = round(rng.uniform(0.05, 0.25) * rate_hz)
    time = np.arange(count) / rate_hz
    low_hz, high_hz = rng.uniform(2_000.0, 4_000.0), rng.uniform(4_000.0, 8_000.0)
    if rng.random() < 0.5:
        low_hz, high_hz = high_hz, low_hz
    phase = 2 * np.pi * (low_hz * time + (high_hz - low_hz) * time**2 / (2 * time[-1]))
    sound = np.sin(phase) + 0.25 * np.sin(2 * phase + 1.0)
    sound *= np.minimum(1.0, np.minimum(time, time[::-1]) / 0.005)
    return np.asarray(sound / np.sqrt(np.mean(sound**2)))


def delayed(sound: npt.NDArray[np.float64], samples: float) -> npt.NDArray[np.float64]:
    """Delay a sound by a possibly fractional number of samples, with room at both ends."""
    room = 64
    padded = np.concatenate([np.zeros(room), sound, np.zeros(room)])
    turns = np.fft.rfftfreq(len(padded)) * (samples - room)
    return np.fft.irfft(np.fft.rfft(padded) * np.exp(-2j * np.pi * turns), len(padded))


def arrivals(
    bearing_rad: float, microphones_m: npt.NDArray[np.float64], rate_hz: float
) -> npt.NDArray[np.float64]:
    """Return when a plane wave reaches each microphone, in samples after the array's centre."""
    towards = np.array([np.cos(bearing_rad), np.sin(bearing_rad)])
    return np.asarray(-(microphones_m @ towards) / SOUND_M_S * rate_hz)


def noise(
    rng: np.random.Generator, samples: int, rate_hz: float, level: float = NOISE
) -> npt.NDArray[np.float64]:
    """Return white noise of the given deviation, and wind, which is slower and louder."""
    found = np.empty(samples)
    blocks = [slice(at, at + BLOCK_SAMPLES) for at in range(0, samples, BLOCK_SAMPLES)]
    for block in blocks:
        rng.standard_normal(out=found[block])
        found[block] *= level
    every = max(1, round(rate_hz / 240.0))  # gusts of a few milliseconds, interpolated linearly
    gusts = rng.standard_normal(samples // every + 2) * (2.0 * level)
    for block in blocks:
        at = np.arange(block.start, min(block.stop, samples)) / every
        found[block] += np.interp(at, np.arange(len(gusts)), gusts)
    return found


def generate(
    seconds: float = 20.0,
    events: int = 20,
    snr_db: float | tuple[float, float] = (12.0, 30.0),
    seed: int = 1,
    rate_hz: float = RATE_HZ,
    progress: Progress | None = None,
) -> Recording:
    """Generate a recording with events at random positions that do not touch.

    `snr_db` is one value for all events, or the range that they are drawn from. `progress` advances
    by one for the noise and by one for each event.

    >>> recording = generate(seconds=1.0, events=1, seed=4)
    >>> len(recording.channels), recording.samples, len(recording.events)
    (4, 48000, 1)
    """
    rng = np.random.default_rng(seed)
    samples = round(seconds * rate_hz)
    lead, slot = round(0.4 * rate_hz), 0
    if events:
        slot = (samples - lead) // events
        if slot < round(0.5 * rate_hz):
            raise InputError(
                f"{events} events need at least {0.4 + 0.5 * events:g} s, not {seconds:g} s"
            )
    told = progress or Progress.silent()
    channels = [noise(rng, samples, rate_hz) for _ in range(CHANNELS)]
    told.advance()
    lowest, highest = (snr_db, snr_db) if isinstance(snr_db, int | float) else snr_db
    known = []
    for number in range(events):
        sound = call(rng, rate_hz)
        start = lead + number * slot + int(rng.integers(64, slot - len(sound) - 4_800))
        level_db, bearing = float(rng.uniform(lowest, highest)), float(rng.uniform(-np.pi, np.pi))
        loud = sound * NOISE * 10 ** (level_db / 20)
        for channel, late in zip(channels, arrivals(bearing, SQUARE_M, rate_hz), strict=True):
            heard = delayed(loud, 64.0 + float(late))
            channel[start - 64 : start - 64 + len(heard)] += heard
        known.append(Event(start, start + len(sound), level_db, bearing))
        told.advance()
    return Recording(
        tuple(channel.astype(np.float32) for channel in channels), rate_hz, tuple(known)
    )


def read_wav(paths: Sequence[Path]) -> Recording:
    """Read the channels of one or several sound files."""
    channels: list[npt.NDArray[np.float32]] = []
    rates = set()
    for path in paths:
        samples, rate_hz = read_sound(path)
        rates.add(rate_hz)
        channels.extend(np.ascontiguousarray(channel) for channel in samples.T)
    if not channels or not len(channels[0]):
        raise InputError(f"{', '.join(map(str, paths))}: no samples")
    if len(rates) > 1 or len({len(channel) for channel in channels}) > 1:
        raise InputError(f"{', '.join(map(str, paths))}: the channels differ in length or in rate")
    return Recording(tuple(channels), rates.pop())


def write_wav(recording: Recording, path: Path) -> None:
    """Write all channels to one WAV file with 16-bit samples, atomically."""
    require_package("soundfile")
    import soundfile

    rate_hz, channels = round(recording.rate_hz), recording.channels
    try:
        with (
            whole_file(path) as part,
            soundfile.SoundFile(part, "w", rate_hz, len(channels), "PCM_16", format="WAV") as sound,
        ):
            for at in range(0, recording.samples, BLOCK_SAMPLES):
                block = [channel[at : at + BLOCK_SAMPLES] for channel in channels]
                sound.write(np.stack(block, axis=1))
    except RuntimeError as error:
        raise InputError(f"{path} cannot be written: {error}") from error
