"""The progress of a validation in steps: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from xstream.console import Progress

__all__ = ["Say", "quiet", "steps"]

#: Called with the step that begins.
Say = Callable[[str], None]
#: Steps for a correct run at full speed; a paced run and a wrong run need one more each.
STEPS = 6


def quiet(_: str) -> None:
    """Ignore progress."""


@contextmanager
def steps(further: int = 0) -> Iterator[Say]:
    """A function to call with each step when it begins; `further` steps follow the validation."""
    begun = 0
    with Progress("validate", STEPS + further, "finished step") as progress:

        def say(what: str) -> None:
            nonlocal begun
            begun += 1
            progress.total = max(STEPS + further, begun)
            progress.update(begun - 1, what)

        yield say
