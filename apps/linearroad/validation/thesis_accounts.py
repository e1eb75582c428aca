"""Accounts of vehicles that enter segments of several expressways in one second (thesis).

Which notification belongs to which segment is then found by matching. A partition has all events,
requests and notifications of its vehicles, which are processed one by one, in order of time. These
vehicles are rare; all others are followed at once, in `thesis_balances`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa

__all__ = ["ANSWERS", "INPUT", "OUTPUT", "accounts_of"]

EVENT, REQUEST, SENT = range(3)
#: Events; requests with their kind; notifications that were sent, with the place in the output.
#: `choices`: speeds and tolls before the discount that are also accepted for an event.
INPUT = """what int, vid int, time int, xway int, entered boolean, first boolean, credited boolean,
    speed bigint, base bigint, choices array<struct<speed bigint, base bigint>>, kind int, qid int,
    place bigint"""
#: Expected answers: notifications, balances and expenditures.
OUTPUT = "type int, time int, key int, f2 bigint, f3 bigint, f4 bigint, rank bigint"
ANSWERS = pa.schema(
    [
        ("type", pa.int32()), ("time", pa.int32()), ("key", pa.int32()), ("f2", pa.int64()),
        ("f3", pa.int64()), ("f4", pa.int64()), ("rank", pa.int64()),
    ]
)  # fmt: skip
Row = dict[str, Any]
Answer = tuple[int, int, int, int, int, int, int]
Pair = tuple[int, int]  # toll and speed


def accounts_of(credit: int, least: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function from the batches of a partition (`INPUT`) to those of the answers (`OUTPUT`)."""

    def answers(batches: Iterator[Any]) -> Iterator[Any]:
        vehicles: dict[int, tuple[list[Row], list[Row], list[Row]]] = defaultdict(
            lambda: ([], [], [])
        )
        for batch in batches:
            for row in batch.to_pylist():
                vehicles[row["vid"]][row["what"]].append(row)
        found: list[Answer] = []
        for vid, parts in vehicles.items():
            found += Account(credit, least).answers(vid, *parts)
        if found:
            values = zip(zip(*found, strict=True), ANSWERS, strict=True)
            columns = [pa.array(column, field.type) for column, field in values]
            yield pa.record_batch(columns, schema=ANSWERS)

    return answers


class Account:
    """The account of one vehicle."""

    def __init__(self, credit: int, least: int) -> None:
        self.credit, self.least = credit, least
        self.spent: dict[int, int] = defaultdict(int)  # by expressway
        self.issued: dict[int, int] = defaultdict(int)

    def answers(
        self, vid: int, events: list[Row], requests: list[Row], sent: list[Row]
    ) -> list[Answer]:
        """The answers to a vehicle; of tolls that may vary, those that were sent."""
        sent.sort(key=lambda row: row["place"])
        marks = sorted([*events, *requests], key=lambda row: (row["time"], row["what"]))
        found: list[Answer] = []
        told = 0
        for time, rows in groupby(marks, key=lambda row: row["time"]):
            now = list(rows)
            entries = [row for row in now if row["what"] == EVENT]
            entered = [row for row in entries if row["entered"]]
            tolls = self.notified(entered, sent[told : told + len(entered)])
            for rank, (_, toll, speed) in enumerate(tolls, told):
                found.append((0, time, vid, toll, speed, 0, rank))
            told += len(entered)
            self.charge(entries, {row["xway"]: toll for row, toll, _ in tolls})
            for row in now:
                if row["what"] == REQUEST:
                    balance = sum(self.spent.values())
                    amount = balance if row["kind"] == 2 else self.spent.get(row["xway"], 0)
                    found.append((row["kind"], time, row["qid"], amount, 0, 0, 0))
        return found

    def notified(self, entered: list[Row], sent: list[Row]) -> list[tuple[Row, int, int]]:
        """Each segment entered in a second, its toll and speed, in the order of those sent."""
        halved = sum(self.spent.values()) >= self.least
        accepted = []
        for row in entered:
            pairs = [(row["speed"], row["base"])]
            pairs += [(each["speed"], each["base"]) for each in row["choices"] or ()]
            accepted.append([(base // 2 if halved else base, speed) for speed, base in pairs])
        told = [(answer["base"], answer["speed"]) for answer in sent]
        owner = matched(accepted, told)
        rest = iter(number for number in range(len(entered)) if number not in owner)
        found = []
        for place in range(len(entered)):
            number = owner[place] if place < len(owner) else None
            answer = told[place] if number is not None else None
            number = next(rest) if number is None else number
            found.append((entered[number], *(answer or accepted[number][0])))
        return found

    def charge(self, entries: list[Row], tolls: dict[int, int]) -> None:
        """Apply the charges and credits of a second."""
        for row in entries:
            xway = row["xway"]
            if row["entered"] and not row["first"]:
                self.spent[xway] += self.issued[xway]
            if row["entered"]:
                self.issued[xway] = tolls[xway]
            if row["credited"]:
                self.spent[xway] -= self.credit


def matched(accepted: list[list[Pair]], sent: list[Pair]) -> list[int | None]:
    """For each answer the number of the entry it is given to, or None; as many as can be.

    A vehicle may enter segments of several expressways in one second, and an answer may suit
    several of them.

    >>> matched([[(0, 35), (0, -1)], [(0, 35)]], [(0, 35), (0, -1)])
    [1, 0]
    """
    owner: list[int | None] = [None] * len(sent)

    def give(number: int, tried: set[int]) -> bool:
        for place, answer in enumerate(sent):
            if place in tried or answer not in accepted[number]:
                continue
            tried.add(place)
            holder = owner[place]
            if holder is None or give(holder, tried):
                owner[place] = number
                return True
        return False

    for number in range(len(accepted)):
        give(number, set())
    return owner
