"""The progress of `generate`, summed up from files that tasks write to the work folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from linearroad.generation.layout import Layout
from xstream import console
from xstream.console.background import repeated

__all__ = ["Show", "Work", "show", "silent"]

POLL_S = 0.5


@dataclass(frozen=True)
class Work:
    """The tasks of one kind, their sizes in some unit, and those that an earlier run finished."""

    what: str
    unit: str
    kind: str
    sizes: dict[tuple[int, ...], int]
    done_before: int = 0

    def done(self, layout: Layout) -> int:
        """The work done: the sizes of finished tasks plus the progress of running ones."""
        present = {path.name for path in layout.work.glob(f"{self.kind}-*")}
        total = self.done_before
        for numbers, size in self.sizes.items():
            noted = layout.progress(self.kind, *numbers)
            if layout.receipt(self.kind, *numbers).name in present:
                total += size
            elif noted.name in present:
                try:
                    total += min(int(noted.read_text() or 0), size)
                except (OSError, ValueError):
                    # The task has just finished, or is writing; it is read again next time.
                    continue
        return total


#: Shows some work below a layout until the block ends.
Show = Callable[[Work, Layout], AbstractContextManager[None]]


@contextmanager
def silent(work: Work, layout: Layout) -> Iterator[None]:
    """Show nothing."""
    yield


@contextmanager
def show(work: Work, layout: Layout) -> Iterator[None]:
    """Show a progress bar on a terminal, else plain lines. The rate excludes earlier work."""
    total = work.done_before + sum(work.sizes.values())
    with console.Progress(work.what, total, work.unit) as progress:
        progress.resume_at(work.done_before)

        def look() -> float:
            began = time.monotonic()
            progress.update(work.done(layout))
            # Listing many files on shared storage must not keep it busy.
            return max(POLL_S, 20 * (time.monotonic() - began))

        with repeated(look, POLL_S):
            yield
