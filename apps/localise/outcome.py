"""Comparison of positions with the known ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from localise.query import Located
from localise.scene import Scene

__all__ = ["Outcome", "evaluate"]

#: Longest time from a call to its detection.
WITHIN_S = 0.4


@dataclass(frozen=True)
class Outcome:
    """Errors of located calls, number of missed calls, and false alarms."""

    errors_m: tuple[float, ...]
    missed: int
    false_alarms: int

    @property
    def median_m(self) -> float:
        """The median error."""
        return float(np.median(self.errors_m)) if self.errors_m else float("nan")

    @property
    def largest_m(self) -> float:
        """The largest error."""
        return max(self.errors_m, default=float("nan"))

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "located": len(self.errors_m),
            "missed": self.missed,
            "false_alarms": self.false_alarms,
            "median_error_m": self.median_m if self.errors_m else None,
            "largest_error_m": self.largest_m if self.errors_m else None,
            "errors_m": list(self.errors_m),
        }


def evaluate(scene: Scene, found: Sequence[Located]) -> Outcome:
    """Compare each call with the first position after it.

    >>> from localise import evaluate, generate, locate
    >>> scene = generate(arrays=4, calls=3, seed=2)
    >>> outcome = evaluate(scene, locate(scene))
    >>> outcome.missed, outcome.false_alarms, outcome.largest_m < 2.0
    (0, 0, True)
    """
    left = list(found)
    errors, missed = [], 0
    for call in scene.calls:
        near = [each for each in left if abs(each.second - call.second) < WITHIN_S]
        if not near:
            missed += 1
            continue
        best = min(near, key=lambda each: abs(each.second - call.second))
        left.remove(best)
        errors.append(float(np.hypot(best.x_m - call.x_m, best.y_m - call.y_m)))
    return Outcome(tuple(errors), missed, len(left))
