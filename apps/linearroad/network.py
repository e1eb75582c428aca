"""The query: parts that each answer for some expressways, and accounts for groups of parts.

A *part* computes everything about the expressways of one file, or of a copy of it, except for the
balances, independently of all other parts. Vehicles may use several expressways of a *group*, so
the accounts of a group take the charges and requests of all its parts. Parts and accounts emit the
same table of answers (`schema.ANSWERS`), one tuple per second. Writing and digesting are sinks that
are connected to these tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import xstream as xs
from linearroad.operators.answers import TABLE, batch
from linearroad.operators.check import check
from linearroad.operators.copies import shift
from linearroad.rules import Paper
from linearroad.run.copies import ORIGINAL, Copy
from linearroad.schema import ANSWERS, PAPER_ROWS
from linearroad.tables.history import History

__all__ = ["Network", "Part", "Stages", "one_expressway"]

#: The streams that come from the operators of each stage of the query.
Stages = dict[str, list[xs.Stream]]


@dataclass(frozen=True)
class Part:
    """The streams of one copy of a file."""

    #: The index of its first expressway among those of the run.
    number: int
    #: Notifications and alerts, and answers from history.
    tables: tuple[xs.Stream, xs.Stream]
    #: Charges and requests, the input of the accounts.
    money: xs.Stream
    #: The reports, including rejected ones.
    reports: xs.Stream
    #: Each second with its statistics and accidents, which tolls are computed from.
    second: xs.Stream
    #: The kernels with state, by name.
    kept: dict[str, xs.Stream]


@dataclass(frozen=True)
class Network:
    """Declares the operators of a query for one rule set."""

    query: xs.Query
    rules: Paper
    stages: Stages = field(default_factory=lambda: defaultdict(list))
    _noted: set[int] = field(default_factory=set)

    def _at(self, stage: str, *streams: xs.Stream) -> xs.Stream:
        """Note that streams come from operators of a stage; returns the last one.

        A rule set without an operator for a stage returns the stream of an earlier stage.
        """
        for stream in streams:
            if stream.node not in self._noted:
                self._noted.add(stream.node)
                self.stages[stage].append(stream)
        return streams[-1]

    def seconds(self, rows: xs.Stream, name: str = "", form: int = PAPER_ROWS) -> xs.Stream:
        """Complete seconds of checked rows. `name` is appended to the names of the operators.

        `form`: what the columns of the rows mean (`RowForm.number`).
        """
        self._at("reading", rows)
        return self._at("decode", rows.iterate(check, form, name=f"check{name}"))

    def copied(self, seconds: xs.Stream, copy: Copy, name: str = "") -> xs.Stream:
        """The same seconds with other expressways and vehicles; all other columns are shared."""
        if copy == ORIGINAL:
            return seconds
        shifted = seconds.iterate(
            shift, copy.vid_by, copy.xway_by, copy.qid_by, name=f"shifted{name}"
        )
        both = shifted.zip(seconds, name=f"copy{name}")
        fields = [field.name for field in seconds.schema]
        return self._at("copies", shifted, both, both.select(*fields, name=f"seconds{name}"))

    def part(self, seconds: xs.Stream, history: History, number: int, name: str = "") -> Part:
        """Everything about the expressways of a file, except for the balances."""
        rules = self.rules
        reports = self._at("vehicles", rules.reports(seconds, name))
        segments = self._at("statistics", rules.segments(reports, name))
        marks = self._at("accidents", rules.marks(reports, name))
        triggers = self._at("tolls", rules.triggers(reports, name))
        second = triggers.zip(segments, marks, name=f"second{name}")
        notified = self._at("tolls", second, rules.notifications(second, name))
        requested = rules.requested(seconds, history, name)
        answers = notified.select(*ANSWERS, name=f"notifications{name}")
        asked = seconds.select("request", name=f"balance requests{name}")
        charged = notified.select(*rules.charged, name=f"charges{name}")
        money = charged.zip(asked, name=f"money{name}")
        self._at("queries", requested)
        self._at("tolls", answers)
        self._at("accounts", asked, charged, money)
        kept = {
            "vehicles": reports,
            "accidents": marks,
            "segment statistics": segments,
            "tolls": notified,
        }
        return Part(number, (answers, requested), money, reports, second, kept)

    def balances(self, money: Sequence[xs.Stream], name: str = "") -> xs.Stream:
        """The accounts of a group of parts: answers with the part that each is for (`asker`).

        These are balances; under the rules of the thesis also expenditures and notifications.
        """
        merged = money[0].merge(*money[1:], by="time", tag="part", name=f"money of all{name}")
        charged = self.rules.charges(merged, name)
        balances = self.rules.balances(charged, len(money), name)
        return self._at("accounts", merged, charged, balances)


def one_expressway(query: xs.Query, rows: xs.Stream, rules: Paper) -> None:
    """Declare the query over one stream of rows; its answers are ordered by time and counted."""
    network = Network(query, rules)
    seconds = network.seconds(rows)
    part = network.part(seconds, History(), 0)
    balances = network.balances([part.money])
    tables = [table.select(*TABLE) for table in (*part.tables, balances)]
    merged = tables[0].merge(*tables[1:], by="time", name="answers by time")
    merged.iterate(batch, len(tables), 1, name="answers").count(name="sink")
    for stream in (seconds, part.reports):
        stream.select("reject").count()
