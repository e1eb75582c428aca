"""The CPU time per report, by stage of the query."""

from __future__ import annotations

from collections.abc import Iterable

import xstream as xs
from linearroad.network import Stages

__all__ = ["STAGES", "stage_nanoseconds"]

#: Stages in the order of the query. In a paced run, reading includes waiting for the clock.
STAGES = (
    "reading", "decode", "copies", "vehicles", "statistics", "accidents", "tolls", "accounts",
    "queries", "output",
)  # fmt: skip
OTHER = "other"
_BUSY = xs.Snapshot.COLUMNS.index("busy_ns")


def stage_nanoseconds(runs: Iterable[tuple[xs.Run, Stages]], reports: int) -> dict[str, float]:
    """Nanoseconds of CPU time per report, by stage. The engine times a sample of its tuples."""
    spent = dict.fromkeys([*STAGES, OTHER], 0)
    for run, stages in runs:
        busy_ns = run.snapshot().counters[:, _BUSY]
        for stage, streams in stages.items():
            spent[stage] += sum(int(busy_ns[stream.node]) for stream in streams)
        spent[OTHER] += int(busy_ns.sum())
    spent[OTHER] -= sum(ns for stage, ns in spent.items() if stage != OTHER)
    return {stage: round(max(ns, 0) / max(reports, 1), 2) for stage, ns in spent.items()}
