"""Comparison of the events that were found with the known ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from detectaudio.detector import Detector
from detectaudio.query import Found, find, heard
from detectaudio.recording import Event, Recording, generate
from xstream.console import Progress

__all__ = ["SURE_DB", "Outcome", "evaluate", "sweep"]

#: All events of at least this signal-to-noise ratio are found; `xstream detectaudio evaluate`
#: prints the share of weaker ones.
SURE_DB = 13.0


@dataclass(frozen=True)
class Outcome:
    """Events that were found or missed, and false alarms."""

    found: tuple[Event, ...]
    missed: tuple[Event, ...]
    false_alarms: tuple[tuple[int, int], ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "found": len(self.found),
            "missed": [event.start for event in self.missed],
            "false_alarms": [list(alarm) for alarm in self.false_alarms],
        }


def evaluate(events: Sequence[Event], found: Sequence[Found], padding: int) -> Outcome:
    """Compare; an event is found if a range without its padding overlaps it.

    >>> from detectaudio import Detector, evaluate, find, generate
    >>> recording = generate(seconds=4.0, events=3, snr_db=15.0, seed=2)
    >>> outcome = evaluate(recording.events, find(recording), Detector().padding)
    >>> len(outcome.found), len(outcome.missed), len(outcome.false_alarms)
    (3, 0, 0)
    """
    ranges = [heard(each, padding) for each in found]

    def overlap(event: Event, told: tuple[int, int]) -> bool:
        return told[0] < event.stop and event.start < told[1]

    hit = [event for event in events if any(overlap(event, told) for told in ranges)]
    missed = [event for event in events if event not in hit]
    false = [told for told in ranges if not any(overlap(event, told) for event in events)]
    return Outcome(tuple(hit), tuple(missed), tuple(false))


def sweep(
    levels_db: Sequence[float],
    seconds: float,
    detector: Detector | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> list[tuple[float, int, int, int]]:
    """Return level, events, events found and false alarms of a recording for each level."""
    chosen = detector or Detector()
    told = progress or Progress.silent()
    told.begin(len(levels_db), "level")
    rows = []
    for number, level in enumerate(levels_db):
        events = max(1, int(seconds / 2.5))
        recording: Recording = generate(seconds, events, level, seed + number)
        outcome = evaluate(recording.events, find(recording, chosen), chosen.padding)
        rows.append((level, events, len(outcome.found), len(outcome.false_alarms)))
        told.advance()
    return rows
