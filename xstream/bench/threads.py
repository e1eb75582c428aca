"""`xstream bench threads`: an application's query on several threads against one, in turns.

Beside them stand as many processes, which run the query on one thread each: cores that share
caches and memory rarely give their number times the speed of one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from xstream.bench.processes import Processes
from xstream.bench.queries import Engine
from xstream.bench.report import Figure, Report
from xstream.bench.settings import Settings
from xstream.bench.subjects import application
from xstream.bench.trials import Trial, interleave
from xstream.errors import InputError
from xstream.query import Query
from xstream.run import Run
from xstream.sched.threads import usable_cores

__all__ = ["TARGETS", "threads"]

#: What two threads are to reach, in multiples of one.
TARGETS = {"detectaudio": 1.8, "detectaudio-blocks": 1.8, "pipeline": 1.6}


class _Runs:
    """Runs a query on some threads; each run has to do what the first one did."""

    def __init__(self, query: Query, settings: Settings) -> None:
        self.query, self.settings = query, settings
        self.samples = 0
        self.wanted: dict[str, tuple[int, int]] | None = None
        self.last: dict[int, Run] = {}

    def trial(self, threads: int) -> Trial:
        """Measure one run."""
        run, trial = _engine(self.settings, threads).timed_run(self.query)
        self.samples = run.source_samples
        found = {name: (stats.tuples, stats.samples) for name, stats in run.stats.items()}
        if self.wanted is None:
            self.wanted = found
        if found != self.wanted:
            raise AssertionError(f"{threads} threads: other tuples than in the first run")
        self.last[threads] = run
        return trial


def _engine(settings: Settings, threads: int = 1) -> Engine:
    return Engine(settings.scheduler, settings.memory, clock=settings.clock, threads=threads)


def threads(settings: Settings, subject: str, counts: tuple[int, ...]) -> Report:
    """Measure the query of an application on each number of threads."""
    cores = usable_cores()
    if not counts or min(counts) < 1 or max(counts) > cores:
        raise InputError(f"--threads is one or more numbers from 1 to {cores}, the number of cores")
    numbers = tuple(dict.fromkeys((1, *counts)))
    query = application(subject, settings.window, settings.seconds, settings.progress)()
    runs = _Runs(query, settings)
    contenders: dict[str, Callable[[], Trial]] = {
        f"{n} threads": partial(runs.trial, n) for n in numbers
    }
    runs.trial(1)
    with ExitStack() as stack:
        for n in numbers[1:]:
            processes = stack.enter_context(
                Processes(n, subject, settings.window, _engine(settings), runs.samples)
            )
            contenders[f"{n} processes"] = processes.trial
        results = interleave(contenders, settings.trials, settings.progress)
    report = Report("threads", settings.to_json(), list(results.values()))
    report.checked = f"{subject}: the tuples and samples of every operator in each run"
    one = results["1 threads"].samples_per_second
    for n in numbers[1:]:
        ratio = results[f"{n} threads"].samples_per_second / one
        target = TARGETS.get(subject) if n == 2 else None
        report.figures.append(Figure(f"{n} threads", ratio, "times one", target))
        most = results[f"{n} processes"].samples_per_second / one
        report.figures.append(Figure(f"{n} processes, one thread each", most, "times one"))
        run = runs.last[n]
        rows = [
            (part, f"{seconds:.3f}", ", ".join(names))
            for part, (seconds, names) in enumerate(zip(run.part_seconds, run.parts, strict=False))
        ]
        title = f"{n} threads, last run of {run.wall_seconds:.3f} s"
        report.tables.append((title, ("thread", "processor s", "operators"), rows))
    return report
