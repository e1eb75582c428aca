"""The progress of a run: stream time, lag, rows per second and memory."""

from __future__ import annotations

import time
from typing import Protocol

import psutil

from xstream.console.progress import Progress

__all__ = ["Live", "RunFigures"]

AGAIN_S = 10.0  # between two warnings that a run is behind
BEHIND_S = 1.0  # stream seconds
LONG_S = 60.0  # of waiting for rows, which might be taken for a run that hangs
YEAR_S = 365.25 * 86_400


class RunFigures(Protocol):
    """What is known of a run while it runs."""

    rows: int
    answers: dict[str, int]  # by kind
    stream_seconds: int
    #: Stream seconds behind schedule, and seconds until the next rows are due.
    lag_s: float
    idle_s: float
    #: A sentence about the first second whose answers were late.
    first_late: str | None


class Live:
    """A progress bar on a terminal, plain lines elsewhere; `total_s` is the length of the stream.

    Prints a line when a paced run falls behind, when its first answers are late, and when it waits
    long for rows.
    """

    def __init__(self, paced: bool, total_s: int | None, progress: Progress | None = None) -> None:
        self._progress = progress or Progress("run", total_s, "second")
        self._process = psutil.Process()
        self._began_at: float | None = None
        self._warned = time.perf_counter()
        self._paced, self._behind, self._late, self._waits = paced, False, False, False

    def __enter__(self) -> Live:
        """Start the clock."""
        self._progress.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the bar."""
        self._progress.__exit__(*error)

    def __call__(self, result: RunFigures) -> None:
        """Show the progress."""
        now = time.perf_counter()
        if self._began_at is None:
            if not result.rows:
                return  # still loading and compiling
            self._began_at = now
            self._progress.begin(self._progress.total, self._progress.unit)
            self._progress.resume_at(result.stream_seconds)
        if self._paced:
            self._warn(result, now)
        self._progress.update(result.stream_seconds, self._note(result, now - self._began_at))

    def _note(self, result: RunFigures, elapsed_s: float) -> str:
        lag = f"lag {result.lag_s:.1f} s, " if self._paced else ""
        memory = self._process.memory_info().rss / 2**20
        return (
            f"{lag}{result.rows / max(elapsed_s, 0.1):,.0f} rows/s, "
            f"{sum(result.answers.values()):,} answers, {memory:,.0f} MiB"
        )

    def _warn(self, result: RunFigures, now: float) -> None:
        if result.first_late is not None and not self._late:
            self._late = True
            self._progress.say(f"too late: {result.first_late}")
        behind = result.lag_s > BEHIND_S
        if behind and (not self._behind or now - self._warned > AGAIN_S):
            self._warned = now
            self._progress.say(
                f"falling behind: second {result.stream_seconds:,} is {result.lag_s:.1f} stream "
                "seconds late"
            )
        elif self._behind and not behind:
            self._progress.say(f"caught up at second {result.stream_seconds:,}")
        self._behind = behind
        if result.idle_s > LONG_S and not self._waits:
            self._progress.say(
                f"after second {result.stream_seconds:,} the next rows are due in "
                f"{_words(result.idle_s)}; Ctrl-C ends the run here"
            )
        self._waits = result.idle_s > LONG_S


def _words(seconds: float) -> str:
    for unit, unit_s in (("years", YEAR_S), ("days", 86_400.0), ("hours", 3600.0)):
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:,.0f} {unit}"
    return f"{seconds / 60:,.0f} minutes"
