"""The rules of the paper; the other rule sets derive from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import xstream as xs
from linearroad.operators.accidents import accidents
from linearroad.operators.accounts import accounts
from linearroad.operators.requests import PAPER_MANNER, answer_requests
from linearroad.operators.road import road
from linearroad.operators.statistics import statistics
from linearroad.operators.tolls import tolls
from linearroad.operators.vehicles import vehicles
from linearroad.tables.history import History

__all__ = ["Paper"]


@dataclass(frozen=True)
class Paper:
    """The operators of a part of the query, by the rules of the paper."""

    #: Whether a LAV is one mean over all reports, the LAV of a segment without any, and what is
    #: added before it is rounded down.
    by_report: ClassVar[int] = 0
    no_lav: ClassVar[int] = -1
    lav_rounding: ClassVar[float] = 0.0
    #: The fields of notifications that the accounts need.
    charged: ClassVar[tuple[str, ...]] = ("time", "charge_vid", "charge")

    def reports(self, seconds: xs.Stream, name: str) -> xs.Stream:
        """The reports, with what each means for its vehicle and segment."""
        return seconds.iterate(vehicles, (0, 0), name=f"vehicles{name}")

    def marks(self, reports: xs.Stream, name: str) -> xs.Stream:
        """The minutes with an accident."""
        return reports.iterate(accidents, name=f"accidents{name}")

    def segments(self, reports: xs.Stream, name: str) -> xs.Stream:
        """The statistics of the segments, when a minute begins."""
        return reports.iterate(
            statistics, self.by_report, self.no_lav, self.lav_rounding,
            name=f"segment statistics{name}",
        )  # fmt: skip

    def triggers(self, reports: xs.Stream, name: str) -> xs.Stream:
        """The reports, with bits for those that trigger notifications."""
        return reports

    def notifications(self, second: xs.Stream, name: str) -> xs.Stream:
        """Notifications, alerts and charges."""
        return second.iterate(tolls, self.no_lav, name=f"tolls{name}")

    def road(self, second: xs.Stream, name: str) -> xs.Stream:
        """The first expressway at the start of each minute, for the live view."""
        return second.iterate(road, self.no_lav, name=f"road{name}")

    def charges(self, money: xs.Stream, name: str) -> xs.Stream:
        """The input of the accounts of a group, with the charges in it."""
        return money

    def requested(self, seconds: xs.Stream, history: History, name: str) -> xs.Stream:
        """Answers to the requests about history."""
        return seconds.iterate(
            answer_requests, history.toll_tables(), history.sum_tables(),
            int(history.knows_segments), PAPER_MANNER, name=f"requests{name}",
        )  # fmt: skip

    def balances(self, money: xs.Stream, parts: int, name: str) -> xs.Stream:
        """The answers of the accounts of a group of `parts` parts."""
        return money.iterate(accounts, parts, name=f"accounts{name}")
