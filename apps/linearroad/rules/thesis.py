"""The rules of the thesis of 2003, an earlier benchmark than the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import xstream as xs
from linearroad.operators.requests import answer_requests, thesis_manner
from linearroad.operators.road import thesis_road
from linearroad.operators.thesis_accidents import thesis_accidents
from linearroad.operators.thesis_accounts import thesis_accounts
from linearroad.operators.thesis_tolls import thesis_tolls
from linearroad.operators.thesis_vehicles import thesis_vehicles
from linearroad.rules.paper import Paper
from linearroad.tables.history import History
from xstream.errors import InputError

__all__ = ["DEFAULT_TARIFF", "Tariff", "Thesis"]

#: So that no toll of a segment with all vehicles of the world overflows.
MOST = 2**31 - 1


@dataclass(frozen=True)
class Tariff:
    """The constants that the thesis leaves open.

    >>> Tariff().basecredit
    50
    """

    basetoll: int = 2
    basecredit: int = 50
    ftmin: int = 500

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value <= MOST:
                raise InputError(f"--{name} must be from 0 to {MOST}, not {value}")


DEFAULT_TARIFF = Tariff()


@dataclass(frozen=True)
class Thesis(Paper):
    """Accidents by segment, alerts at detection, and a discount for frequent travellers."""

    tariff: Tariff = DEFAULT_TARIFF

    by_report: ClassVar[int] = 1
    charged: ClassVar[tuple[str, ...]] = ("time", "entered")

    def reports(self, seconds: xs.Stream, name: str) -> xs.Stream:
        return seconds.iterate(thesis_vehicles, name=f"vehicles{name}")

    def marks(self, reports: xs.Stream, name: str) -> xs.Stream:
        return reports.iterate(thesis_accidents, name=f"accidents{name}")

    def notifications(self, second: xs.Stream, name: str) -> xs.Stream:
        return second.iterate(thesis_tolls, self.tariff.basetoll, name=f"tolls{name}")

    def road(self, second: xs.Stream, name: str) -> xs.Stream:
        return second.iterate(thesis_road, self.tariff.basetoll, name=f"road{name}")

    def requested(self, seconds: xs.Stream, history: History, name: str) -> xs.Stream:
        return seconds.iterate(
            answer_requests, history.toll_tables(), history.sum_tables(),
            int(history.knows_segments), thesis_manner(self.tariff.basetoll),
            name=f"requests{name}",
        )  # fmt: skip

    def balances(self, money: xs.Stream, parts: int, name: str) -> xs.Stream:
        tariff = (self.tariff.basecredit, self.tariff.ftmin)
        return money.iterate(thesis_accounts, parts, tariff, name=f"accounts{name}")
