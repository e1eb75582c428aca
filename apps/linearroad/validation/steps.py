"""How far a validation is: a line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Say", "quiet", "steps"]

#: Takes what is being done now.
Say = Callable[[str], None]


def quiet(_: str) -> None:
    """Say nothing."""


@contextmanager
def steps() -> Iterator[Say]:
    """Something to tell each step to, on standard error."""
    begin = time.monotonic()
    if not sys.stderr.isatty():
        yield lambda what: print(
            f"{time.monotonic() - begin:6.1f} s  {what}", file=sys.stderr, flush=True
        )
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("starting") as status:
        yield lambda what: status.update(f"{what}, {time.monotonic() - begin:.0f} s so far")
