"""The sustainable load: the most stations with which all windows are right and in time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from xstream import InputError
from xstream.console import Progress
from yabench.benchmark import run_tests
from yabench.testfile import Test

__all__ = ["holds", "sustainable"]

#: The search ends when the load that is held and the one that is not are this near.
RESOLUTION = 1.25


def sustainable(
    test: Test, out: Path, start: int, most: int, progress: Progress
) -> dict[int, bool]:
    """Try loads, doubling until one is not held, then between; return which were held."""
    tries: dict[int, bool] = {}

    def tried(stations: int) -> bool:
        name = f"{test.name}-{stations}"
        (found,) = run_tests([replace(test, name=name, stations=stations)], out, progress)
        if found["missing"]:
            raise InputError(found["failure"])
        tries[stations] = holds(found)
        return tries[stations]

    low, high = 0, min(start, most)
    while tried(high):
        low = high
        if high == most:
            return tries
        high = min(2 * high, most)
    while low and high > low * RESOLUTION:
        middle = round((low * high) ** 0.5)
        low, high = (middle, high) if tried(middle) else (low, middle)
    return tries


def holds(found: dict[str, Any]) -> bool:
    """Return whether a run was right, with every delay below one slide."""
    judged = found["judged"]["strict"]
    delays = [window["delay_ms"] for window in judged["windows"]]
    in_time = all(delay is not None and delay < judged["slide_ms"] for delay in delays)
    return bool(judged["right"] and in_time and not found["failure"])
