"""Attachments: resources of an operator outside the core during a run: a thread, a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

__all__ = ["Attachment", "Counting", "Outcome", "Position", "Resumable", "Unrepeatable"]

#: How a run ended: its sources ended, it was stopped, it was stopped at a checkpoint from which it
#: can go on, or an operator failed.
Outcome = Literal["done", "stopped", "suspended", "failed"]
#: The position of a source or a sink: plain numbers and strings, as in JSON.
Position = Mapping[str, Any]


class Attachment(Protocol):
    """Starts and ends with a run, and keeps the error of its operator."""

    @property
    def error(self) -> BaseException | None:
        """The error, if the operator failed."""

    def begin(self) -> None:
        """Called when the run starts."""

    def end(self, outcome: Outcome) -> None:
        """Called when the run is over: completes an output, and raises an error if that fails."""


@runtime_checkable
class Resumable(Attachment, Protocol):
    """A source that can be read again from a position, or a sink that can be cut back to one.

    Positions are taken when no tuple is in flight: after a burst, or when a run is over.
    """

    def position(self) -> Position:
        """Return the position. A sink first flushes everything up to there to disk."""

    def restore(self, position: Position) -> None:
        """Set the position before the run starts. Raises an InputError if that is not possible."""


@runtime_checkable
class Unrepeatable(Attachment, Protocol):
    """A source that cannot be read again, or a sink whose output cannot be taken back."""

    @property
    def guarantee(self) -> str:
        """One sentence: what is lost, or repeated, if a run is continued after a failure."""


@runtime_checkable
class Counting(Attachment, Protocol):
    """A source or sink with counters of its own, such as lost datagrams."""

    def counters(self) -> Mapping[str, int]:
        """Return the counters by name."""


@runtime_checkable
class Flushing(Protocol):
    """A sink that takes time to flush what its position covers."""

    def ask(self) -> None:
        """Begin to flush; `position` waits for the end."""
