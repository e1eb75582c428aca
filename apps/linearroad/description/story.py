"""The story of one vehicle: its reports, and what the answers of a run told it.

The vehicle is the one with the most to tell: an accident alert, tolls, and a balance above zero.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linearroad.description.figures import read_blocks
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import Entry
from linearroad.schema import (
    ALERT,
    ASKS_BALANCE,
    ASKS_EXPENDITURE,
    ASKS_TRAVEL_TIME,
    BALANCE,
    EXPENDITURE,
    REPORTS,
    TOLL,
    TRAVEL_TIME,
)  # fmt: skip

__all__ = ["Event", "Story", "tell"]

COLUMNS = ("type", "time", "vid", "spd", "lane", "dir", "seg", "pos", "qid")
REQUESTS = {BALANCE: ASKS_BALANCE, EXPENDITURE: ASKS_EXPENDITURE, TRAVEL_TIME: ASKS_TRAVEL_TIME}
STANDING_MPH = 5


class Event(NamedTuple):
    """Something that the vehicle did or was told: the second, the kind of answer, and words."""

    second: int
    kind: int | None
    words: str


@dataclass
class Story:
    """One vehicle on one expressway; reports have the columns second, speed and position."""

    vid: int
    direction: int
    reports: NDArray[np.int64]
    events: list[Event] = field(default_factory=list)
    tolls: list[int] = field(default_factory=list)
    alerts: int = 0
    balance: int | None = None

    def mile_at(self, second: int) -> float:
        """Where the vehicle last reported from."""
        place = max(int(np.searchsorted(self.reports[:, 0], second, side="right")) - 1, 0)
        return float(self.reports[place, 2] / 5280)


class Told(NamedTuple):
    """The answers to one vehicle, as rows of time, value and amount by kind."""

    tolls: list[tuple[int, int, int]]
    alerts: list[tuple[int, int, int]]


def tell(traffic: Path, manifest: Entry, answers: Path, xway: int = 0) -> Story | None:
    """Choose a vehicle and tell its story; None if no vehicle was told anything.

    `answers` is the flat file that `run` wrote for this traffic.
    """
    path = Layout(traffic).traffic(xway, manifest["parameters"]["format"])
    rows = _columns(path)
    to_vehicles, to_requests = _answers(answers)
    requests = np.flatnonzero(np.isin(rows["type"], list(REQUESTS.values())))
    asked: defaultdict[int, list[int]] = defaultdict(list)
    for row in requests.tolist():
        asked[int(rows["vid"][row])].append(row)
    reported = rows["type"] == REPORTS
    lanes = _one_direction(rows, reported)

    def interest(vid: int) -> tuple[int, ...]:
        told = to_vehicles[vid]
        balances = [
            to_requests.get((BALANCE, int(rows["qid"][row])), (0, 0, 0))[2]
            for row in asked[vid]
            if rows["type"][row] == ASKS_BALANCE
        ]
        above_zero = sum(amount > 0 for _, _, amount in told.tolls)
        return (
            (vid in lanes) + 2 * (max(balances, default=0) > 0) + (above_zero > 0)
            + bool(told.alerts),
            above_zero, len(told.alerts), -vid,
        )  # fmt: skip

    best = max(to_vehicles, key=interest, default=None)
    if best is None:
        return None
    own = np.flatnonzero((rows["vid"] == best) & reported)
    if not len(own):
        return None
    reports = np.column_stack([rows[name][own] for name in ("time", "spd", "pos")]).astype(np.int64)
    story = Story(best, int(rows["dir"][own[-1]]), reports)
    _add_road(story)
    _add_told(story, to_vehicles[best])
    for row in asked[best]:
        _add_request(story, int(rows["type"][row]), int(rows["qid"][row]), to_requests)
    story.events.sort(key=lambda event: event.second)
    return story


def _columns(path: Path) -> dict[str, NDArray[np.int32]]:
    blocks = list(read_blocks(path, COLUMNS))
    return {name: np.concatenate(parts) for name, *parts in zip(COLUMNS, *blocks, strict=True)}


def _one_direction(rows: dict[str, NDArray[np.int32]], reported: NDArray[np.bool_]) -> set[int]:
    """The vehicles that drive in one direction all the time, whose way is one line."""
    vids, directions = rows["vid"][reported], rows["dir"][reported]
    return set(np.unique(vids).tolist()) - (
        set(np.unique(vids[directions == 0]).tolist())
        & set(np.unique(vids[directions == 1]).tolist())
    )


def _answers(path: Path) -> tuple[dict[int, Told], dict[tuple[int, int], tuple[int, int, int]]]:
    """Tolls and alerts by vehicle, and the answers to requests by kind and QID."""
    told: defaultdict[int, Told] = defaultdict(lambda: Told([], []))
    requests = {}
    with path.open(newline="") as file:
        for row in csv.reader(file):
            kind = int(row[0])
            if kind == TOLL:
                told[int(row[1])].tolls.append((int(row[2]), int(row[4]), int(row[5])))
            elif kind == ALERT:
                told[int(row[3])].alerts.append((int(row[1]), int(row[4]), 0))
            elif kind == BALANCE:
                requests[kind, int(row[4])] = int(row[1]), int(row[3]), int(row[5])
            elif kind == EXPENDITURE:
                requests[kind, int(row[3])] = int(row[1]), 0, int(row[4])
            else:
                requests[kind, int(row[3])] = int(row[1]), int(row[4]), int(row[5])
    return told, requests


def _add_road(story: Story) -> None:
    """Where the vehicle enters, waits and was last seen."""
    seconds, speeds, feet = story.reports.T
    way = "east" if story.direction == 0 else "west"
    story.events.append(
        Event(int(seconds[0]), None, f"first report, at mile {feet[0] / 5280:.1f}, driving {way}")
    )
    slow = np.flatnonzero(speeds <= STANDING_MPH)
    if len(slow):
        words = f"in the queue at mile {feet[slow[0]] / 5280:.1f}, at {speeds[slow[0]]} mph"
        story.events.append(Event(int(seconds[slow[0]]), None, words))
    words = f"last report, at mile {feet[-1] / 5280:.1f}, after {len(seconds)} reports"
    story.events.append(Event(int(seconds[-1]), None, words))


def _add_told(story: Story, told: Told) -> None:
    """Tolls and alerts."""
    story.tolls = [amount for _, _, amount in told.tolls]
    warned = {second for second, _, _ in told.alerts}
    for second, speed, amount in told.tolls:
        price = f"a toll of {amount:,}" if amount else "no toll"
        why = f"the average speed is {speed} mph" if speed >= 0 else "no average speed is known"
        if second in warned:
            why = "there is an accident ahead"
        story.events.append(Event(second, TOLL, f"{price} for the segment: {why}"))
    story.alerts = len(told.alerts)
    for second, segment, _ in told.alerts:
        story.events.append(Event(second, ALERT, f"alert: accident in segment {segment}"))


def _add_request(story: Story, kind: int, qid: int, answers: dict[tuple[int, int], Any]) -> None:
    answer = next(answer for answer, asks in REQUESTS.items() if asks == kind)
    if (answer, qid) not in answers:
        return
    second, value, amount = answers[answer, qid]
    words = {
        BALANCE: f"asks for its balance: {amount:,}, as of second {value}",
        EXPENDITURE: f"asks what it spent that day: {amount:,}",
        TRAVEL_TIME: f"asks for a travel time: {value} s and tolls of {amount:,}",
    }[answer]
    if answer == BALANCE:
        story.balance = amount
    story.events.append(Event(second, answer, words))
