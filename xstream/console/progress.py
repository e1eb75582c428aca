"""Progress of a command: a bar with the remaining time on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

__all__ = ["Progress"]

#: Commands that take less time show no progress.
QUIET_S = 2.0
#: Seconds between plain lines.
LINE_EVERY_S = 5.0
#: Seconds between two drawings of a bar.
DRAW_EVERY_S = 0.1


class Progress:
    """Progress of one task, on stderr; `total` is None if it is unknown.

    `done` is an absolute number, so that it can also be read from a task in another process.

    >>> with Progress("profile", total=12, unit="trial") as progress:
    ...     progress.update(3)
    >>> progress.text(elapsed_s=4.0)
    'profile: trial 3 of 12 (25 %), about 12 s left'
    """

    def __init__(
        self,
        what: str,
        total: float | None = None,
        unit: str = "",
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done, self.note = 0.0, ""
        self._stream, self._clock = stream or sys.stderr, clock
        self._began = self._phase_began = clock()
        self._shown_at = self._began + QUIET_S - LINE_EVERY_S
        self._first = 0.0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        """Start the clock."""
        self._began = self._phase_began = self._clock()
        self._shown_at = self._began + QUIET_S - LINE_EVERY_S
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the bar; plain lines stay."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    @classmethod
    def silent(cls) -> Progress:
        """Return a progress that shows nothing."""
        return cls("", clock=lambda: 0.0)

    def begin(self, total: float | None, unit: str) -> None:
        """Begin the next part of the work; its progress and rate are counted from zero."""
        self.total, self.unit, self.done, self._first, self.note = total, unit, 0.0, 0.0, ""
        self._phase_began = self._clock()
        if self._bar is not None:
            self._bar.reset(self._task, total=total)

    def resume_at(self, done: float) -> None:
        """Set the work that was done earlier, which is not used to estimate the remaining time."""
        self._first = self.done = done

    def advance(self, by: float = 1, note: str = "") -> None:
        """Add to the work that is done."""
        self.update(self.done + by, note)

    def update(self, done: float, note: str = "") -> None:
        """Set the work that is done; `note` is shown after it."""
        self.done, self.note = done, note
        now = self._clock()
        if now - self._began < QUIET_S:
            return
        terminal = self._stream.isatty()
        if now - self._shown_at < (DRAW_EVERY_S if terminal else LINE_EVERY_S):
            return
        self._shown_at = now
        if terminal:
            self._draw()
        else:
            print(self.text(now - self._phase_began), file=self._stream, flush=True)

    def say(self, sentence: str) -> None:
        """Print a sentence, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(sentence, markup=False, highlight=False, soft_wrap=True)
        else:
            print(sentence, file=self._stream, flush=True)

    def text(self, elapsed_s: float) -> str:
        """Return the plain line."""
        parts = [f"{self._counted()}"]
        if self.total:
            parts[0] += f" ({self._share():.0%})".replace("%", " %")
            left_s = self.left_s(elapsed_s)
            if left_s is not None:
                parts.append(f"about {_duration(left_s)} left")
        if self.note:
            parts.append(self.note)
        return f"{self.what}: {', '.join(parts)}"

    def left_s(self, elapsed_s: float) -> float | None:
        """Return the estimated remaining seconds; None if they are unknown."""
        if not self.total or self.done <= self._first:
            return None
        return max(self.total - self.done, 0.0) / (self.done - self._first) * elapsed_s

    def _counted(self) -> str:
        done = f"{self.done:,.0f}"
        unit = f"{self.unit} " if self.unit else ""
        return f"{unit}{done}" + (f" of {self.total:,.0f}" if self.total else "")

    def _share(self) -> float:
        """Return the share that is done; never rounded up to 1."""
        assert self.total
        return min(self.done / self.total, 1.0 if self.done >= self.total else 0.994)

    def _draw(self) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn(self.what), BarColumn(), TextColumn("{task.fields[text]}"))
            # Drawn only in `update`: a thread that draws would disturb measurements.
            self._bar = Bar(
                *columns, console=Console(file=self._stream), transient=True, auto_refresh=False
            )
            self._task = self._bar.add_task(self.what, total=self.total, text="")
            self._bar.start()
        text = self.text(self._clock() - self._phase_began).removeprefix(f"{self.what}: ")
        self._bar.update(self._task, completed=self.done, text=text, refresh=True)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
