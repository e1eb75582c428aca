"""The rules of the validator of 2004."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import xstream as xs
from linearroad.operators.brandeis import later_charges, visits
from linearroad.operators.brandeis_accidents import accidents_brandeis
from linearroad.operators.vehicles import vehicles
from linearroad.rules.paper import Paper
from linearroad.tables.batches import PERIOD

__all__ = ["Brandeis"]


@dataclass(frozen=True)
class Brandeis(Paper):
    """Stopped cars have speed 0, first visits trigger, and the next notification charges."""

    charged: ClassVar[tuple[str, ...]] = ("time", "kind", "who", "amount")

    def reports(self, seconds: xs.Stream, name: str) -> xs.Stream:
        # A report still counts 30 s later, so the stop lasts one second more.
        return seconds.iterate(vehicles, (1, PERIOD + 1), name=f"vehicles{name}")

    def marks(self, reports: xs.Stream, name: str) -> xs.Stream:
        return reports.iterate(accidents_brandeis, name=f"accidents{name}")

    def triggers(self, reports: xs.Stream, name: str) -> xs.Stream:
        return reports.iterate(visits, name=f"first visits{name}")

    def charges(self, money: xs.Stream, name: str) -> xs.Stream:
        return money.iterate(later_charges, name=f"later charges{name}")
