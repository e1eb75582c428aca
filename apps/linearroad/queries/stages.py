"""Where a report's nanoseconds go: the time of all operators, by what they are there for."""

from __future__ import annotations

import re
from collections.abc import Iterable

import xstream as xs

__all__ = ["STAGES", "stage_nanoseconds"]

#: Stages in the order of the query, and the operators (without their numbers) that belong to each.
#: In a paced run, reading includes waiting for the clock.
STAGES = {
    "reading": ("rows",),
    "decode": ("check",),
    "copies": ("to be shifted", "shifted", "copy", "seconds"),
    "vehicles": ("vehicles",),
    "statistics": ("segment statistics",),
    "accidents": ("accidents",),
    "tolls": ("second", "tolls", "charges"),
    "accounts": (
        "requests for accounts", "requests and charges", "ticks", "money", "accounts",
    ),
    "queries": ("requests", "requests for history", "daily expenditure", "travel time"),
    "output": (
        "answers", "last", "answers of a second", "digest", "all copies", "told",
        "digest of balances", "all copies of balances", "told of balances",
    ),
}  # fmt: skip
_BY_OPERATOR = {name: stage for stage, names in STAGES.items() for name in names}
OTHER = "other"


def stage_nanoseconds(runs: Iterable[xs.Run], reports: int) -> dict[str, float]:
    """Nanoseconds of a core for each report, by stage. The engine times a sample of its tuples."""
    spent = dict.fromkeys([*STAGES, OTHER], 0)
    for run in runs:
        for name, stats in run.stats.items():
            spent[_BY_OPERATOR.get(re.sub(r"[ \d]+$", "", name), OTHER)] += stats.busy_ns
    return {stage: round(ns / max(reports, 1), 2) for stage, ns in spent.items()}
