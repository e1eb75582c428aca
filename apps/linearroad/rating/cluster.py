"""The runs of a rating on a Spark cluster: an L, divided evenly over all of its slots.

All runs share one session. The originals run as one task. Every step starts all of its tasks at the
same time, and ends them all as soon as one of them has a late answer. What tasks write, and what
is compared, is on shared storage; the driver sees figures, and the digests of the originals.
"""

from __future__ import annotations

import functools
import platform
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from linearroad import spark as sparks
from linearroad.generation.manifest import Entry, read_json
from linearroad.output.digests import Digests, differences, read_digests
from linearroad.output.summary import machine
from linearroad.rating.box import PROBE_MINUTES, timeline_of
from linearroad.rating.options import RatingOptions
from linearroad.rating.originals import (
    LEGS,
    STATE,
    Originals,
    digest_of_written,
    pause_of,
    prepared,
)
from linearroad.rating.steps import Say, Step, fill
from linearroad.run.cluster import run_on_cluster
from linearroad.run.job import RunOptions, run
from linearroad.run.share import Share
from linearroad.run.task import (
    DIGESTS,
    Job,
    groups_folder,
    hand_over,
    staged,
    staged_history,
    task_folder,
)
from linearroad.scratch import scratch
from linearroad.slots import in_every_slot, slots_of
from linearroad.storage import remove_tree
from linearroad.validation.job import EXECUTOR_MEMORY, HistoryPaths, validate
from xstream.console.memory import available_bytes
from xstream.console.timeline import Row
from xstream.errors import XStreamError

__all__ = ["OnCluster", "compare", "on_cluster"]

#: No checkpoint is taken: a task that is lost is late, and its step does not pass.
NEVER_S = 1e9


@contextmanager
def on_cluster(options: RatingOptions) -> Iterator[OnCluster]:
    """A session on the cluster, for all runs of a rating."""
    with sparks.session(options.master, "rate", EXECUTOR_MEMORY, options.threads) as spark:
        yield OnCluster(spark, options)


class OnCluster:
    """The slots of a cluster; a slot is the cores of a task."""

    def __init__(self, spark: Any, options: RatingOptions) -> None:
        self._spark, self._options = spark, options
        self.slots = slots_of(spark, options.threads)
        places = in_every_slot(spark, self.slots, _place)
        tasks = Counter(host for host, _, _ in places)
        self._free = min(free // tasks[host] for host, free, _ in places)
        self._memory = sum({host: total for host, _, total in places}.values())
        self._hosts = len(tasks)

    def free_bytes(self) -> int:
        """The memory of each task on the machine that has least of it."""
        return self._free

    def machine(self) -> Entry:
        """The cluster, with the cores and the memory of all of its machines."""
        return machine() | {
            "cpu": f"{self._hosts} machines of {self._options.master}",
            "cores": self.slots * self._options.threads,
            "memory_bytes": self._memory,
        }

    def prepare(self, manifest: Entry, say: Say) -> Originals:
        """Run the originals as one task, and save their digests and their state."""
        folder, base = self._options.out / "reference", self._options.base
        originals = int(manifest["parameters"]["expressways"])
        pause = pause_of(manifest, PROBE_MINUTES)
        task = functools.partial(_prepare, base, folder, pause, self._options.threads)
        sparks.run_tasks(self._spark, task, [originals])
        return prepared(folder, manifest, pause)

    def make_validated(self, say: Say) -> None:
        """Write the originals' answers, and validate them, with the tasks of the cluster."""
        base, folder = self._options.base, self._options.originals
        options = RunOptions(form="parquet", threads=self._options.threads)
        run_on_cluster(Job(base, folder, base, None, None, options), None)
        validate(base, folder, HistoryPaths(base), say=lambda sentence: say(f"  {sentence}"))

    def digest_of_written(self, minutes: int) -> Digests:
        """The digests of the answers that were validated, each file's in a task."""
        folder = self._options.originals
        written = sorted(groups_folder(folder).glob("*/output.parquet"))
        task = functools.partial(_digest, minutes)
        found = sparks.run_tasks(self._spark, task, written or [folder / "output.parquet"])
        return np.sum(found, axis=0, dtype=np.uint64)  # type: ignore[no-any-return]

    def step(self, step: Step, originals: Originals, out: Path, say: Say) -> list[Row]:
        """Run a step and fill in its result; returns the timeline of the task that was slowest."""
        base, rated = self._options.base, step.rated
        options = RunOptions(
            speed=step.speed, threads=self._options.threads, answers="digest", stop_when_late=True,
            expressways=int(rated) if rated == int(rated) else rated, checkpoint_s=NEVER_S,
            from_state=originals.state if step.kind == "probe" else None,
        )  # fmt: skip
        tasks = min(self.slots, step.expressways // len(originals.digests))
        try:
            group = step.expressways // tasks
            run_on_cluster(Job(base, out, base, None, None, options), None, group)
        except XStreamError as error:
            step.why = str(error)
            return []
        summary = read_json(out / "summary.json")
        fill(step, summary)
        last = self._last_rows(out)
        step.cpu_s = sum(row["cpu_s"] for row in last.values())
        step.wall_s = max(row["wall_s"] for row in last.values())
        if not step.why:
            compare(step, summary, out, originals.digests)
        step.passed = not step.why
        return _slowest(last)

    def timeline(self, out: Path) -> list[Row]:
        """The timeline of the task that was slowest in a step."""
        return _slowest(self._last_rows(out))

    def _last_rows(self, out: Path) -> dict[Path, Row]:
        """The last line of the timeline of each task, by its folder."""
        folders = sorted(groups_folder(out).iterdir())
        return dict(zip(folders, sparks.run_tasks(self._spark, _last_row, folders), strict=True))


def _place(_: int) -> tuple[str, int, int]:
    """The name, the free memory and the memory of the machine of a slot."""
    return platform.node(), available_bytes(), int(machine()["memory_bytes"])


def _prepare(base: Path, folder: Path, pause: int, threads: int, originals: int) -> None:
    """Run the originals in two parts; a task, which runs in a folder of its machine."""
    with scratch(task_folder(), "xstream-rate-") as room:
        share = Share(0, 0, originals)
        source = staged(base, share, room.folder)
        past = staged_history(Job(base, folder, base, None, None, RunOptions()), share, room.folder)
        first, last, state = (room.folder / name for name in (*LEGS, STATE))
        options = RunOptions(answers="digest", threads=threads)
        run(source, first, past, replace(options, minutes=pause, keep_state=state))
        run(source, last, past, replace(options, from_state=state))
        for place in (first, last, state):
            remove_tree(folder / place.name)
            for path in sorted(place.iterdir()):
                hand_over(path, folder / place.name / path.name)


def _digest(minutes: int, path: Path) -> Digests:
    return digest_of_written(path, minutes)


def _slowest(last: dict[Path, Row]) -> list[Row]:
    return timeline_of(max(last, key=lambda folder: last[folder]["lag_s"]))


def _last_row(folder: Path) -> Row:
    """The last line of the timeline of a group."""
    rows = timeline_of(folder)
    return rows[-1] if rows else {"cpu_s": 0.0, "wall_s": 0.0, "lag_s": 0.0}


def compare(step: Step, summary: Entry, out: Path, reference: Digests) -> None:
    """Tasks have compared the copies with the originals of the run; compare these with those that
    were validated."""
    minutes = slice(step.from_minute, step.to_minute)
    first = groups_folder(out) / Share(0, 0, 1).name / DIGESTS
    digests = read_digests(first, len(reference), step.to_minute, 0)[:, minutes]
    wrong, told = differences(digests, reference[:, minutes], first_minute=step.from_minute)
    different = wrong + summary["copies_differ"]
    sentences = [difference.sentence() for difference in told] + summary["first_differences"]
    kinds = digests.shape[1] * digests.shape[2]
    step.digests = {
        "compared": step.expressways * kinds, "different": different, "first": sentences,
    }  # fmt: skip
    if different:
        step.why = f"{different:,} digests are not the originals'; {sentences[0]}"
