"""Profiles of memory managers: the costs of a query under each variant and their causes.

Throughput is measured in plain runs, in turns. Costs come from further runs in which every tuple
and every call of the memory manager is timed. Those runs take longer, so their times are reported
only as shares of the fastest one; their counts are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any

from xstream.bench.queries import Engine
from xstream.bench.report import machine
from xstream.bench.trials import Result, Trial, interleave
from xstream.console import Progress
from xstream.errors import InputError
from xstream.io.iterable import IterableSource
from xstream.query import Query
from xstream.run import Run
from xstream.sched import SCHEDULER_NAMES, scheduler
from xstream.sigseg import MANAGER_NAMES, MemoryStats, memory_manager

__all__ = ["Comparison", "OperatorProfile", "Profile", "Variant", "compare", "variants"]

#: Approximate number of points of the memory timeline.
_POINTS = 240
#: The largest value of --batch.
_MOST_TUPLES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Variant:
    """The settings of a run: scheduler, memory manager and burst size."""

    scheduler: str
    memory: str
    #: `tuple_burst`: tuples that each source admits at a time; None means no limit.
    batch: int | None

    @property
    def name(self) -> str:
        """The name of the variant in tables and plots."""
        batch = "no limit" if self.batch is None else self.batch
        return f"{self.memory}, {self.scheduler}, batch {batch}"


def variants(memory: str, schedulers: str, batches: str) -> list[Variant]:
    """Return every combination of the given lists, which are separated by commas, or `all`.

    >>> [variant.name for variant in variants("refcount-lazy", "df", "1,64")]
    ['refcount-lazy, df, batch 1', 'refcount-lazy, df, batch 64']
    """
    return [
        Variant(scheduler_name, manager, batch)
        for scheduler_name, batch, manager in product(
            _names(schedulers, SCHEDULER_NAMES, "--scheduler"),
            map(_batch, batches.split(",")),
            _names(memory, MANAGER_NAMES, "--memory"),
        )
    ]


def _names(given: str, known: Iterable[str], option: str) -> list[str]:
    chosen = list(known) if given == "all" else given.split(",")
    for name in chosen:
        if name not in known:
            raise InputError(f"{option} is all, or of {', '.join(known)}: not {name!r}")
    return chosen


def _batch(given: str) -> int | None:
    if given == "none":
        return None
    if not (given.isascii() and given.isdecimal() and 1 <= int(given) <= _MOST_TUPLES):
        raise InputError(
            f"--batch is a number of tuples (1 to {_MOST_TUPLES:,}), several, or none: "
            f"not {given!r}"
        )
    return int(given)


@dataclass(frozen=True, slots=True)
class OperatorProfile:
    """The costs of one operator under one variant."""

    name: str
    tuples: int
    samples: int
    #: Its own time, including `manager_ns` in the memory manager.
    busy_ns: int
    manager_ns: int
    bytes_copied: int
    copied_for: dict[str, int]
    allocations: int
    reallocations: int
    moved_reallocations: int
    queue_peak: int


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of a query under one variant."""

    variant: Variant
    result: Result
    samples: int
    memory: MemoryStats
    operators: tuple[OperatorProfile, ...]
    profiled_ns: int
    manager_ns: int
    queue_bytes_peak: int
    #: Pairs of seconds since the start of the profiled run and live bytes.
    timeline: tuple[tuple[float, int], ...]

    @property
    def samples_per_second(self) -> float:
        """Samples per second of the best plain run."""
        return self.result.samples_per_second

    @property
    def manager_share(self) -> float:
        """The share of the time that was spent in the memory manager."""
        return min(1.0, self.manager_ns / self.profiled_ns)

    @property
    def operator_share(self) -> float:
        """The share that was spent in operators, without the memory manager."""
        own = sum(max(0, each.busy_ns - each.manager_ns) for each in self.operators)
        return min(1.0 - self.manager_share, own / self.profiled_ns)

    @property
    def engine_share(self) -> float:
        """The rest: queues, scheduling and reading the clock."""
        return max(0.0, 1.0 - self.manager_share - self.operator_share)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            **asdict(self.variant),
            **{k: v for k, v in self.result.to_json().items() if k not in ("name", "samples")},
            "samples": self.samples,
            "copied_bytes_per_sample": self.memory.bytes_copied / max(1, self.samples),
            "shares": {
                "manager": self.manager_share,
                "operators": self.operator_share,
                "engine": self.engine_share,
            },
            "memory_counters": {name: self.memory[name] for name in self.memory},
            "queue_bytes_peak": self.queue_bytes_peak,
            "operators": [asdict(operator) for operator in self.operators],
            "timeline": [list(point) for point in self.timeline],
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The profiles of a query under several variants."""

    query: str
    clock: str
    profiles: tuple[Profile, ...]
    machine: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "query": self.query,
            "clock": self.clock,
            "profiles": [profile.to_json() for profile in self.profiles],
            "machine": self.machine,
        }


def compare(
    declare: Callable[[], Query],
    chosen: Iterable[Variant],
    trials: int = 3,
    clock: str = "wall",
    progress: Progress | None = None,
) -> Comparison:
    """Run a query under every variant: first plain runs in turns, then profiled runs.

    `progress` is updated between runs.

    >>> import numpy as np, xstream as xs
    >>> def declare():
    ...     q = xs.Query("halves")
    ...     q.source(xs.io.array(np.zeros(8), window=4)).rewindow(2).count()
    ...     return q
    >>> found = compare(declare, variants("copy-always,refcount-lazy", "df", "64"), trials=1)
    >>> [profile.memory.copied_for["subseg"] for profile in found.profiles]
    [128, 0]
    """
    if trials < 1:
        raise InputError(f"--trials is at least 1, not {trials}")
    picked = list(chosen)
    query = declare()
    query.validate()
    for node in query.nodes:
        source = node.operator
        if isinstance(source, IterableSource) and hasattr(source.items, "__next__"):
            raise InputError(
                f"{node.name}: an iterator serves one run only, and a profile needs several: give "
                "xs.io.iterable a list, or a function that returns the iterator"
            )
    engines = {
        each.name: Engine(each.scheduler, each.memory, each.batch, clock, fuse=False)
        for each in picked
    }

    def plain(engine: Engine) -> Trial:
        return engine.timed_run(declare())[1]

    told = progress or Progress.silent()
    contenders = {name: partial(plain, each) for name, each in engines.items()}
    results = interleave(contenders, trials, told)
    times = min(trials, 3)
    told.begin(len(picked) * times, "profiled run")

    def profiled(variant: Variant) -> Profile:
        found = _profile(declare(), variant, results[variant.name])
        told.advance(note=variant.name)
        return found

    profiles = tuple(
        # Other load on the machine inflates times, so the fastest run counts.
        min((profiled(each) for _ in range(times)), key=lambda profile: profile.profiled_ns)
        for each in picked
    )
    return Comparison(query.name, clock, profiles, machine())


def _profile(query: Query, variant: Variant, result: Result) -> Profile:
    manager = memory_manager(variant.memory)
    run = Run(
        query, scheduler(variant.scheduler), manager, variant.batch, profile=True, debug=False
    )
    timeline: list[tuple[float, int]] = []
    run.look_up_ns = max(20_000, round(result.best.seconds * 1e9 / _POINTS))

    def look(running: Run) -> None:
        timeline.append((running.wall_seconds, manager.stats().live_bytes))

    run.execute(progress=look)
    run.uninterrupted()
    stats, costs = run.stats, run.costs
    operators = tuple(
        OperatorProfile(
            name, stats[name].tuples, stats[name].samples, stats[name].busy_ns, cost.manager_ns,
            cost.bytes_copied, cost.copied_for, cost.allocations, cost.reallocations,
            cost.moved_reallocations, stats[name].queue_peak,
        )
        for name, cost in costs.items()
    )  # fmt: skip
    spent_ns = max(round(run.wall_seconds * 1e9), sum(each.busy_ns for each in operators), 1)
    return Profile(
        variant, result, run.source_samples, run.memory, operators, spent_ns, run.manager_ns,
        run.queue_bytes_peak, tuple(_thinned(timeline)),
    )  # fmt: skip


def _thinned(points: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Reduce a timeline to at most twice the points that a plot can show; peaks are kept."""
    bucket = -(-len(points) // (2 * _POINTS))
    if bucket <= 1:
        return points
    return [
        max(points[i : i + bucket], key=lambda point: point[1])
        for i in range(0, len(points), bucket)
    ]
