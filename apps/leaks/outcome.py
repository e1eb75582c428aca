"""Comparison of the leaks that were found with the known ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leaks.detector import LeakDetector
from leaks.pressure import Pressure, Transient, generate
from leaks.query import find
from xstream.console import Progress

__all__ = ["SURE_DB", "Outcome", "evaluate", "sweep"]

#: All leaks of at least this signal-to-noise ratio are found.
SURE_DB = 30.0
#: Largest distance of a reported front from the middle of its transient.
NEAR_SAMPLES = 64


@dataclass(frozen=True)
class Outcome:
    """Leaks that were found or missed, and false alarms."""

    found: tuple[Transient, ...]
    missed: tuple[Transient, ...]
    false_alarms: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "found": len(self.found),
            "missed": [leak.at for leak in self.missed],
            "false_alarms": list(self.false_alarms),
        }


def evaluate(pressure: Pressure, found: Sequence[tuple[int, float]]) -> Outcome:
    """Compare; a leak is found if a front was reported within a few samples of it.

    >>> from leaks import evaluate, find, generate
    >>> pressure = generate(seconds=60.0, transients=12, leaks=5, seed=5)
    >>> outcome = evaluate(pressure, find(pressure))
    >>> len(outcome.found), len(outcome.missed), len(outcome.false_alarms)
    (5, 0, 0)
    """
    told = [start for start, _ in found]
    hit = [leak for leak in pressure.leaks if any(abs(at - leak.at) < NEAR_SAMPLES for at in told)]
    missed = [leak for leak in pressure.leaks if leak not in hit]
    false = [at for at in told if all(abs(at - leak.at) >= NEAR_SAMPLES for leak in pressure.leaks)]
    return Outcome(tuple(hit), tuple(missed), tuple(false))


def sweep(
    levels_db: Sequence[float],
    seconds: float,
    detector: LeakDetector | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> list[tuple[float, int, int, int]]:
    """Return level, leaks, leaks found and false alarms of a recording for each level."""
    told = progress or Progress.silent()
    told.begin(len(levels_db), "level")
    rows = []
    for number, level in enumerate(levels_db):
        transients = int(seconds / 2.5)
        pressure = generate(seconds, transients, transients // 2, level, seed + number)
        outcome = evaluate(pressure, find(pressure, detector))
        rows.append((
            level, len(pressure.leaks), len(outcome.found), len(outcome.false_alarms)
        ))  # fmt: skip
        told.advance()
    return rows
