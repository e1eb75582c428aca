"""How far positions are from the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from localise.query import Located
from localise.scene import Scene

__all__ = ["Outcome", "evaluate"]

#: A call is heard at most so long after it was made.
WITHIN_S = 0.4


@dataclass(frozen=True)
class Outcome:
    """Errors of the calls that were located, those that were not, and positions of none."""

    errors_m: tuple[float, ...]
    missed: int
    false_alarms: int

    @property
    def median_m(self) -> float:
        """The error in the middle."""
        return float(np.median(self.errors_m)) if self.errors_m else float("nan")

    @property
    def largest_m(self) -> float:
        """The worst error."""
        return max(self.errors_m, default=float("nan"))

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "located": len(self.errors_m),
            "missed": self.missed,
            "false_alarms": self.false_alarms,
            "median_error_m": self.median_m if self.errors_m else None,
            "largest_error_m": self.largest_m if self.errors_m else None,
            "errors_m": list(self.errors_m),
        }


def evaluate(scene: Scene, found: Sequence[Located]) -> Outcome:
    """A call is located by the position that follows it closest in time.

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
