"""Trials: contenders take turns, so that other load on the machine affects all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

from xstream.console import Progress

__all__ = ["Result", "Stopwatch", "Trial", "interleave", "repetitions"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement; loading, which is done before the clock starts, is recorded separately."""

    samples: int
    seconds: float
    loading_seconds: float = 0.0
    #: CPU time divided by wall-clock time; below 1 the machine was busy.
    processor_share: float = 1.0

    @property
    def samples_per_second(self) -> float:
        """Samples per second of processing."""
        return self.samples / self.seconds


class Stopwatch:
    """Measures wall-clock and CPU seconds of a `with` block."""

    wall_seconds = 0.0
    processor_seconds = 0.0

    def __enter__(self) -> Stopwatch:
        self._begin, self._begin_processor = perf_counter(), process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_seconds = perf_counter() - self._begin
        self.processor_seconds = process_time() - self._begin_processor

    def trial(self, samples: int, clock: str, loading_seconds: float = 0.0) -> Trial:
        """Return the measurement as a trial by the given clock."""
        seconds = self.wall_seconds if clock == "wall" else self.processor_seconds
        share = min(1.0, self.processor_seconds / self.wall_seconds)
        return Trial(samples, seconds, loading_seconds, share if clock == "wall" else 1.0)


@dataclass(frozen=True, slots=True)
class Result:
    """The trials of a contender: the best one counts, and the spread shows how steady they were."""

    name: str
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The fastest trial."""
        return max(self.trials, key=lambda trial: trial.samples_per_second)

    @property
    def samples_per_second(self) -> float:
        """Samples per second of the best trial."""
        return self.best.samples_per_second

    @property
    def spread(self) -> float:
        """The difference of the slowest and the fastest trial, as a share of the fastest."""
        slowest = min(trial.samples_per_second for trial in self.trials)
        return 1.0 - slowest / self.samples_per_second

    @property
    def loading_seconds(self) -> float:
        """The shortest loading time."""
        return min(trial.loading_seconds for trial in self.trials)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "samples_per_second": self.samples_per_second,
            "spread": self.spread,
            "samples": self.best.samples,
            "loading_seconds": self.loading_seconds,
            "processor_share": self.best.processor_share,
            "trials": [trial.samples_per_second for trial in self.trials],
        }


def interleave(
    contenders: Mapping[str, Callable[[], Trial]], trials: int, progress: Progress | None = None
) -> dict[str, Result]:
    """Warm up every contender once, then measure them in turns.

    `progress` is updated between trials.

    >>> results = interleave({"a": lambda: Trial(10, 2.0), "b": lambda: Trial(10, 1.0)}, trials=3)
    >>> results["b"].samples_per_second / results["a"].samples_per_second
    2.0
    """
    told = progress or Progress.silent()
    told.begin(len(contenders) * (1 + trials), "trial")
    for name, contender in contenders.items():
        contender()
        told.advance(note=name)
    measured: dict[str, list[Trial]] = {name: [] for name in contenders}
    for _ in range(trials):
        for name, contender in contenders.items():
            measured[name].append(contender())
            told.advance(note=name)
    return {name: Result(name, tuple(found)) for name, found in measured.items()}


def repetitions(once: Callable[[int], Trial], seconds: float) -> int:
    """Return the number of repetitions that take about the given seconds.

    >>> repetitions(lambda times: Trial(times, 1e-4 + times * 0.01), seconds=0.5)
    50
    """
    times = 1
    while True:
        took = once(times).seconds
        if took > seconds / 20 or times >= 1 << 20:
            return max(1, round(times * seconds / took))
        times *= 8
