"""Runs tasks on Spark, and finds the tasks that are finished already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from linearroad import spark as sparks
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import Entry, read_json
from linearroad.generation.parameters import TrafficParameters
from linearroad.generation.progress import Show, Work

__all__ = ["Runner", "numbers_of", "receipts"]

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass
class Runner:
    """Runs the tasks of one `generate` on Spark."""

    spark: Any
    layout: Layout
    parameters: TrafficParameters
    progress: Show
    partitions: int

    def tasks(
        self, work: Work, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Run tasks and show their progress."""
        if not items:
            return []
        for numbers in work.sizes:
            # Stale: from an interrupted run, or for a file that has been removed.
            self.layout.receipt(work.kind, *numbers).unlink(missing_ok=True)
            self.layout.progress(work.kind, *numbers).unlink(missing_ok=True)
        with self.progress(work, self.layout):
            return sparks.run_tasks(self.spark, function, items, self.partitions)


def receipts(layout: Layout, kind: str, done: Sequence[Entry]) -> dict[tuple[int, ...], Entry]:
    """Entries of finished tasks, from the manifest and from receipts of an interrupted run."""
    known = {numbers_of(entry): entry for entry in done}
    for path in sorted(layout.work.glob(f"{kind}-*.json")):
        entry = read_json(path)
        known[numbers_of(entry)] = entry
    return known


def numbers_of(entry: Entry) -> tuple[int, ...]:
    """The expressway of an entry, and its day if it has one."""
    return tuple(entry[name] for name in ("xway", "day") if name in entry)
