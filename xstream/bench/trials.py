"""Measuring: contenders take turns, so that whatever else the machine does hits all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

from xstream.console import Progress

__all__ = ["Result", "Stopwatch", "Trial", "interleave", "repetitions"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One measured piece of work; loading, before the clock starts, is kept apart."""

    samples: int
    seconds: float
    loading_seconds: float = 0.0
    #: For how much of the time this process had a processor; below 1 the machine was busy.
    processor_share: float = 1.0

    @property
    def samples_per_second(self) -> float:
        """Samples by second of processing."""
        return self.samples / self.seconds


class Stopwatch:
    """Seconds of the wall's clock and of the processor's, around a `with` block."""

    wall_seconds = 0.0
    processor_seconds = 0.0

    def __enter__(self) -> Stopwatch:
        self._begin, self._begin_processor = perf_counter(), process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_seconds = perf_counter() - self._begin
        self.processor_seconds = process_time() - self._begin_processor

    def trial(self, samples: int, clock: str, loading_seconds: float = 0.0) -> Trial:
        """What was measured, as a trial by that clock."""
        seconds = self.wall_seconds if clock == "wall" else self.processor_seconds
        share = min(1.0, self.processor_seconds / self.wall_seconds)
        return Trial(samples, seconds, loading_seconds, share if clock == "wall" else 1.0)


@dataclass(frozen=True, slots=True)
class Result:
    """What a contender reached: its best trial counts, the spread says how steady it was."""

    name: str
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The fastest trial."""
        return max(self.trials, key=lambda trial: trial.samples_per_second)

    @property
    def samples_per_second(self) -> float:
        """The best trial's."""
        return self.best.samples_per_second

    @property
    def spread(self) -> float:
        """How far the slowest trial stayed behind the fastest, as a share of the fastest."""
        slowest = min(trial.samples_per_second for trial in self.trials)
        return 1.0 - slowest / self.samples_per_second

    @property
    def loading_seconds(self) -> float:
        """The quickest loading."""
        return min(trial.loading_seconds for trial in self.trials)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
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
    """Let every contender warm up once, then measure them in turns.

    `progress` is told between trials.

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
    """How often a piece of work must be repeated to take about so many seconds.

    >>> repetitions(lambda times: Trial(times, 1e-4 + times * 0.01), seconds=0.5)
    50
    """
    times = 1
    while True:
        took = once(times).seconds
        if took > seconds / 20 or times >= 1 << 20:
            return max(1, round(times * seconds / took))
        times *= 8
