"""The result of a validation: the figures of `validation.json`, and a summary line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from linearroad.validation.answers import LIMITS_S, TYPES

__all__ = ["KINDS", "TypeFigures", "Verdict", "share", "type_figures"]

#: Kinds of differences; the last two are about time, the others about contents.
KINDS = (
    "missing", "unexpected", "different", "duplicate", "malformed", "disorder", "early", "late",
)  # fmt: skip
WRONG = KINDS[:-2]


def share(part: int, whole: int) -> float:
    """Precision or recall; 1 if there is nothing to count.

    >>> share(3, 4), share(0, 0)
    (0.75, 1.0)
    """
    return part / whole if whole else 1.0


@dataclass
class TypeFigures:
    """One type of answer."""

    name: str
    expected: int = 0
    answered: int = 0
    right: int = 0
    differences: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    limit_s: int = 0
    delay_s: dict[str, float] | None = None  # p50, p90, p99, p999, worst

    @property
    def precision(self) -> float:
        """The share of the answers that are right."""
        return share(self.right, self.answered)

    @property
    def recall(self) -> float:
        """The share of the expected answers that were given."""
        return share(self.right, self.expected)

    def as_dict(self) -> dict[str, Any]:
        """All figures, with precision and recall."""
        return {**asdict(self), "precision": self.precision, "recall": self.recall}


def type_figures(limits_s: Sequence[int]) -> list[TypeFigures]:
    """The figures of all types, with their limits."""
    return [TypeFigures(name, limit_s=limit) for name, limit in zip(TYPES, limits_s, strict=True)]


@dataclass
class Verdict:
    """The contents of `validation.json`."""

    rules: str
    speed: float | str
    paced: bool
    rows: int
    bad_rows: int
    last_second: int
    covered: str  # in words, if not the whole input was checked
    types: list[TypeFigures] = field(default_factory=lambda: type_figures(LIMITS_S))
    unreadable: int = 0  # rows of the output without a valid type
    minutes: list[dict[str, Any]] = field(default_factory=list)
    first_differences: list[str] = field(default_factory=list)
    differences_file: str | None = None
    rows_by_second: dict[int, int] = field(default_factory=dict)
    histogram: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, *kinds: str) -> int:
        """Differences of some kinds."""
        found = sum(each.differences[kind] for each in self.types for kind in kinds)
        return found + (self.unreadable if "malformed" in kinds else 0)

    @property
    def right(self) -> bool:
        """Whether every expected answer was given, once, and no other."""
        return self.count(*WRONG) == 0

    @property
    def in_time(self) -> bool | None:
        """Whether all answers were within their limits; None if the run was not paced."""
        return self.count("early", "late") == 0 if self.paced else None

    @property
    def passed(self) -> bool:
        """Whether the run is right and, if it was paced, in time."""
        return self.right and self.in_time is not False

    def line(self) -> str:
        """The verdict in one line."""
        answered = sum(each.answered for each in self.types)
        parts = []
        if self.right:
            parts.append(f"right: all {answered:,} answers by the rules of {self.rules}")
        else:
            found = [f"{self.count(kind):,} {kind}" for kind in WRONG if self.count(kind)]
            expected = sum(each.expected for each in self.types)
            parts.append(
                f"WRONG: {', '.join(found)} of {expected:,} expected answers by the rules of "
                f"{self.rules}"
            )
        if self.in_time is None:
            why = "every Emit is its Time"
            if self.rules == "thesis":
                why = "every Arrival is the second of its cause"
            if self.speed == "max":
                why = "the run was made at --speed max"
            parts.append(f"correctness only, for {why}")
        elif self.in_time:
            worst = max((each.delay_s["worst"] for each in self.types if each.delay_s), default=0.0)
            parts.append(f"every one within its limit at speed {self.speed:g}, worst {worst:.3f} s")
        else:
            late, early = self.count("late"), self.count("early")
            told = [f"{n:,} {how}" for n, how in ((late, "late"), (early, "before time")) if n]
            parts.append(f"NOT IN TIME: {', '.join(told)}")
        if self.covered:
            parts.append(self.covered)
        return "; ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """The contents of `validation.json`."""
        plain = {
            name: value for name, value in vars(self).items()
            if name not in ("types", "rows_by_second", "histogram")
        }  # fmt: skip
        return {
            "verdict": self.line(),
            "passed": self.passed,
            "right": self.right,
            "in_time": self.in_time,
            "differences": {kind: self.count(kind) for kind in KINDS},
            "types": {each.name: each.as_dict() for each in self.types},
            **plain,
        }
