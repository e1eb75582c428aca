"""What an operator has outside the core during one run: a thread, a file, a position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

__all__ = ["Attachment", "Outcome", "Position", "Resumable"]

#: How a run ended: its sources have ended, somebody stopped it, or an operator failed.
Outcome = Literal["done", "stopped", "failed"]
#: Where a source or a sink is: plain numbers and strings, as JSON holds them.
Position = Mapping[str, Any]


class Attachment(Protocol):
    """Begins and ends with a run, and keeps the error that its operator failed of."""

    @property
    def error(self) -> BaseException | None:
        """What went wrong, where the operator failed."""

    def begin(self) -> None:
        """The run begins."""

    def end(self, outcome: Outcome) -> None:
        """The run is over. What an output still lacks is written; an error is raised."""


@runtime_checkable
class Resumable(Attachment, Protocol):
    """A source that can be read again from a position, or a sink that can be cut back to one.

    Positions are taken where nothing is in flight: after a burst, or when a run is over.
    """

    def position(self) -> Position:
        """Where it is. A sink first brings everything up to there to the disk."""

    def restore(self, position: Position) -> None:
        """Begin there; before the run begins. An InputError where that cannot be done."""
