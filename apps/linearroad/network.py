"""The query: parts that answer for some expressways each, and accounts for groups of them.

A *part* is worked on apart from all others: everything about the expressways of one file, or of a
copy of it, but the balances. Vehicles may drive on several expressways of a *group*, so that a
group's accounts get the charges and requests of all of its parts. Parts and accounts emit the same
table of answers (`layout.ANSWERS`), one tuple a second; whoever writes or digests answers connects
a sink to those tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import xstream as xs
from linearroad.operators.accounts import accounts
from linearroad.operators.check import check
from linearroad.operators.copies import shift
from linearroad.operators.requests import answer_requests
from linearroad.rules import Paper
from linearroad.run.copies import ORIGINAL, Copy
from linearroad.schema import ANSWERS
from linearroad.tables.history import History

__all__ = ["Network", "Part", "Stages"]

#: Operators by the stage of the query that they belong to, as the streams that come from them.
Stages = dict[str, list[xs.Stream]]


@dataclass(frozen=True)
class Part:
    """What is worked out for one copy of a file."""

    #: As the expressway that it would be.
    number: int
    #: Notifications and alerts, and answers from history.
    tables: tuple[xs.Stream, xs.Stream]
    #: What the accounts need.
    money: xs.Stream
    #: The reports, with those that are rejected.
    reports: xs.Stream
    #: The kernels that keep something, by name.
    kept: dict[str, xs.Stream]


@dataclass(frozen=True)
class Network:
    """Declares the operators of a query, by the rules of one rule set."""

    query: xs.Query
    rules: Paper
    stages: Stages = field(default_factory=lambda: defaultdict(list))
    _noted: set[int] = field(default_factory=set)

    def _at(self, stage: str, *streams: xs.Stream) -> xs.Stream:
        """Note that streams come from operators of a stage; returns the last one.

        Where a rule set has no operator for something, it passes on what another stage has noted.
        """
        for stream in streams:
            if stream.node not in self._noted:
                self._noted.add(stream.node)
                self.stages[stage].append(stream)
        return streams[-1]

    def seconds(self, rows: xs.Stream, name: str = "") -> xs.Stream:
        """Whole seconds of checked rows. `name` ends the names of the operators."""
        self._at("reading", rows)
        return self._at("decode", rows.iterate(check, name=f"check{name}"))

    def copied(self, seconds: xs.Stream, copy: Copy, name: str = "") -> xs.Stream:
        """The same seconds on expressways of their own; what is not shifted is shared."""
        if copy == ORIGINAL:
            return seconds
        shifted = seconds.iterate(
            shift, copy.vid_by, copy.xway_by, copy.qid_by, name=f"shifted{name}"
        )
        both = shifted.zip(seconds, name=f"copy{name}")
        fields = [field.name for field in seconds.schema]
        return self._at("copies", shifted, both, both.select(*fields, name=f"seconds{name}"))

    def part(self, seconds: xs.Stream, history: History, number: int, name: str = "") -> Part:
        """Everything about some expressways but the balances."""
        rules = self.rules
        reports = self._at("vehicles", rules.reports(seconds, name))
        segments = self._at("statistics", rules.segments(reports, name))
        marks = self._at("accidents", rules.marks(reports, name))
        triggers = self._at("tolls", rules.triggers(reports, name))
        second = triggers.zip(segments, marks, name=f"second{name}")
        notified = self._at("tolls", second, rules.notifications(second, name))
        requested = seconds.iterate(
            answer_requests, history.toll_tables(), history.sum_tables(),
            int(history.knows_segments), name=f"requests{name}",
        )  # fmt: skip
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
        return Part(number, (answers, requested), money, reports, kept)

    def balances(self, money: Sequence[xs.Stream], name: str = "") -> xs.Stream:
        """The balances of a group of parts, as a table of answers with who asked (`asker`)."""
        merged = money[0].merge(*money[1:], by="time", tag="part", name=f"money of all{name}")
        charged = self.rules.charges(merged, name)
        balances = charged.iterate(accounts, len(money), name=f"accounts{name}")
        return self._at("accounts", merged, charged, balances)
