"""Synthetic pressure of a water main: drift, sensor noise, and transients with their echoes.

A pump or a valve sends a short dip of pressure down the pipe, which is reflected at the far end.
The echo keeps most of the height of the dip if the pipe is intact, and little of it after a leak.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream.errors import InputError

__all__ = ["Pressure", "Transient", "generate", "read"]

RATE_HZ = 8_000.0
LEVEL_BAR = 4.0
NOISE_BAR = 0.002
#: Samples that are generated at a time; Ctrl-C is handled in between.
BLOCK_SAMPLES = 1 << 20
#: A dip's width, and the echo's delay: together they fit the guard of a window.
DIP_SAMPLES = 20.0
DELAY_SAMPLES = (130, 180)
#: Share of a dip that an intact pipe reflects. A stronger echo could exceed the front, because the
#: wavelet takes only every 16th sample.
SOUND_ECHO, LEAKY_ECHO = (0.5, 0.7), (0.03, 0.15)
#: Smallest distance of two transients, so that no window has two.
APART_SAMPLES = 9_000


@dataclass(frozen=True, slots=True)
class Transient:
    """A dip of pressure and its echo."""

    at: int
    height_bar: float
    echo: float
    leak: bool


@dataclass(frozen=True, eq=False)
class Pressure:
    """Samples of one sensor and the known transients."""

    samples: npt.NDArray[np.float64]
    rate_hz: float
    transients: tuple[Transient, ...] = ()

    @property
    def leaks(self) -> tuple[Transient, ...]:
        """The transients with a leak."""
        return tuple(transient for transient in self.transients if transient.leak)


def generate(
    seconds: float = 60.0,
    transients: int = 20,
    leaks: int = 8,
    snr_db: float | tuple[float, float] = (30.0, 50.0),
    seed: int = 1,
) -> Pressure:
    """Generate pressure with transients, of which `leaks` have passed a leak.

    `snr_db` is the height of a dip relative to the deviation of the noise: one value or a range.

    >>> pressure = generate(seconds=30.0, transients=5, leaks=2)
    >>> len(pressure.samples), len(pressure.transients), len(pressure.leaks)
    (240000, 5, 2)
    """
    rng = np.random.default_rng(seed)
    count = round(seconds * RATE_HZ)
    if not 0 <= leaks <= transients:
        raise InputError(f"{leaks} of {transients} transients cannot tell of leaks")
    slot = (count - APART_SAMPLES) // max(transients, 1)
    if transients and slot <= APART_SAMPLES:
        least = APART_SAMPLES * (transients + 1) / RATE_HZ
        raise InputError(f"{transients} transients need more than {least:g} s, not {seconds:g} s")
    samples = np.empty(count)
    for at in range(0, count, BLOCK_SAMPLES):
        block = samples[at : at + BLOCK_SAMPLES]
        time = np.arange(at, at + len(block)) / RATE_HZ
        block[:] = LEVEL_BAR + 0.1 * np.sin(2 * np.pi * time / 47.0)
        block += 0.02 * np.sin(time * 2 * np.pi)
        block += NOISE_BAR * rng.standard_normal(len(block))
    leaky = np.zeros(transients, bool)
    leaky[rng.permutation(transients)[:leaks]] = True
    lowest, highest = (snr_db, snr_db) if isinstance(snr_db, int | float) else snr_db
    known = []
    for number in range(transients):
        at = APART_SAMPLES // 2 + number * slot + int(rng.integers(0, slot - APART_SAMPLES))
        height = NOISE_BAR * 10 ** (float(rng.uniform(lowest, highest)) / 20)
        echo = float(rng.uniform(*(LEAKY_ECHO if leaky[number] else SOUND_ECHO)))
        _add_dip(samples, at, height)
        _add_dip(samples, at + int(rng.integers(*DELAY_SAMPLES)), height * echo)
        known.append(Transient(at, height, echo, bool(leaky[number])))
    return Pressure(samples, RATE_HZ, tuple(known))


def _add_dip(samples: npt.NDArray[np.float64], at: int, height: float) -> None:
    reach = int(6 * DIP_SAMPLES)
    around = np.arange(-reach, reach + 1)
    samples[at - reach : at + reach + 1] -= height * np.exp(-0.5 * (around / DIP_SAMPLES) ** 2)


def read(path: Path, rate_hz: float = RATE_HZ) -> Pressure:
    """Read the samples of a `.npy` file, or of the last column of a CSV file."""
    if not path.exists():
        raise InputError(f"{path} does not exist")
    try:
        samples = np.load(path, allow_pickle=False) if path.suffix == ".npy" else _last_column(path)
    except (OSError, ValueError, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error).isprintable() else "it is damaged"
        raise InputError(f"{path} cannot be read as pressure: {reason}") from error
    if samples.ndim != 1 or samples.dtype.kind not in "iuf" or not len(samples):
        raise InputError(
            f"{path} cannot be read as pressure: it has values of type {samples.dtype} in shape "
            f"{samples.shape}, not a row of numbers"
        )
    return Pressure(np.ascontiguousarray(samples, np.float64), rate_hz)


def _last_column(path: Path) -> npt.NDArray[Any]:
    """Read the last column of a CSV file."""
    import pyarrow.csv

    with path.open("rb") as file:
        start = file.read(1 << 16)
    if b"\0" in start:
        raise ValueError("it is neither a .npy file nor a CSV file, but binary data")
    table = pyarrow.csv.read_csv(path)
    found: npt.NDArray[Any] = table.column(table.num_columns - 1).to_numpy()
    return found
