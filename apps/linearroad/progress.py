"""How far a run is: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

__all__ = ["Progress", "show", "silent"]

# What is being done, how many tasks, where their receipts and row counts lie, and their kind.
Progress = Callable[[str, int, Path, str], AbstractContextManager[None]]
POLL_S = 0.5


@contextmanager
def silent(what: str, tasks: int, work: Path, kind: str) -> Iterator[None]:
    """Show nothing."""
    yield


def rows_so_far(work: Path, kind: str) -> int:
    """Rows that the running tasks of a kind have reported."""
    rows = 0
    for path in work.glob(f"{kind}-*.rows"):
        try:
            rows += int(path.read_text() or 0)
        except (OSError, ValueError):
            # The task has just finished, or is writing: the next look will tell.
            continue
    return rows


def rows_of_receipts(work: Path, kind: str, seen: dict[str, int]) -> int:
    """Rows of the finished tasks of a kind; each receipt is read once."""
    import json

    for path in work.glob(f"{kind}-*.json"):
        if path.name not in seen:
            try:
                entry = json.loads(path.read_text())
            except (OSError, ValueError):
                continue
            seen[path.name] = int(entry.get("rows", entry.get("reports", 0)))
    return sum(seen.values())


@contextmanager
def show(what: str, tasks: int, work: Path, kind: str) -> Iterator[None]:
    """Count tasks and rows until the block ends."""
    if tasks == 0:
        yield
        return
    if sys.stderr.isatty():
        with _bar(what, tasks, work, kind):
            yield
        return
    begin = time.monotonic()
    print(f"{what}: {tasks} to do", file=sys.stderr, flush=True)
    yield
    rows = rows_of_receipts(work, kind, {})
    took = time.monotonic() - begin
    print(f"{what}: {tasks} done, {rows:,} rows in {took:.1f} s", file=sys.stderr, flush=True)


@contextmanager
def _bar(what: str, tasks: int, work: Path, kind: str) -> Iterator[None]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<20}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} done, {task.fields[rows]:,} rows"),
        TimeElapsedColumn(),
    )
    seen: dict[str, int] = {}
    before = len(list(work.glob(f"{kind}-*.json")))
    stop = threading.Event()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        line = bar.add_task(what, total=tasks, rows=0)

        def look() -> None:
            rows = rows_of_receipts(work, kind, seen) + rows_so_far(work, kind)
            bar.update(line, completed=max(len(seen) - before, 0), rows=rows)

        def watch() -> None:
            while not stop.wait(POLL_S):
                look()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            look()
