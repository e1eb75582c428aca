"""A query as a contender of a benchmark: checked once, then measured in trials."""

from __future__ import annotations

from collections.abc import Callable

from xstream.bench.queries import Declared, Engine
from xstream.bench.settings import Settings
from xstream.bench.trials import Trial, repetitions

__all__ = ["contender"]


def contender(
    settings: Settings, declared: Declared, engine: Engine | None = None, once: bool = False
) -> Callable[[], Trial]:
    """Check one pass over the recording, choose the repetitions per trial, return the trial."""
    how = engine or settings.engine
    settings.progress.advance()
    wanted = declared.checked_samples(how)

    def trial(repeat: int) -> Trial:
        return declared.trial(how, repeat, wanted)

    if once:
        repeat = 1
    elif settings.samples is not None:
        repeat = max(1, round(settings.samples / len(declared.recording)))
    else:
        repeat = repetitions(trial, settings.seconds)
    return lambda: trial(repeat)
