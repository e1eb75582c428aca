"""Benchmarks of applications: queries in several forms, measured in turns.

An application registers its benchmark in the entry point group `xstream.benchmarks`: a function of
`Settings` that returns a `Report`. `xstream bench` adds a command for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xstream.bench.queries import Engine
from xstream.bench.settings import Settings
from xstream.bench.trials import Result, Trial, interleave, repetitions
from xstream.query import Query, SinkRef

__all__ = ["GROUP", "Form", "contender_of", "measure_forms"]

#: Group of the entry points of benchmarks.
GROUP = "xstream.benchmarks"


@dataclass(frozen=True)
class Form:
    """A query of an application, declared over a number of repetitions of its recording."""

    name: str
    declare: Callable[[Query, int], SinkRef]
    #: Number of output tuples by repetitions; it must be the same in every run.
    counted: dict[int, int] = field(default_factory=dict)

    def trial(self, engine: Engine, repeat: int) -> Trial:
        """Run and time the query; the number of output tuples must equal that of the first run."""
        query = Query(self.name)
        out = self.declare(query, repeat)
        run, trial = engine.timed_run(query)
        found = int(run[out])
        if found != self.counted.setdefault(repeat, found):
            raise AssertionError(
                f"{self.name}: {found:,} tuples came out, not {self.counted[repeat]:,} as before"
            )
        return trial


def contender_of(
    form: Form, engine: Engine, seconds: float, repeat: int | None = None
) -> Callable[[], Trial]:
    """Return a trial of about the given length, or with the given number of samples."""
    times = repeat or repetitions(lambda times: form.trial(engine, times), seconds)
    return lambda: form.trial(engine, times)


def measure_forms(
    settings: Settings,
    forms: Mapping[str, tuple[Form, Engine]],
    recording_samples: int,
) -> dict[str, Result]:
    """Measure every form in turns; `recording_samples` counts the samples of all sources."""
    repeat = None
    if settings.samples is not None:
        repeat = max(1, round(settings.samples / recording_samples))
    contenders = {}
    for name, (form, engine) in forms.items():
        settings.progress.advance()
        contenders[name] = contender_of(form, engine, settings.seconds, repeat)
    return interleave(contenders, settings.trials, settings.progress)
