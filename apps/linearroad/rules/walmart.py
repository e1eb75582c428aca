"""The rules of the validator of 2016."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import xstream as xs
from linearroad.operators.walmart import accidents_walmart, vehicles_walmart
from linearroad.rules.paper import Paper

__all__ = ["Walmart"]


@dataclass(frozen=True)
class Walmart(Paper):
    """Trips end on lane 4, accidents never end, and a LAV is one mean over all reports."""

    by_report: ClassVar[int] = 1
    no_lav: ClassVar[int] = 0
    lav_rounding: ClassVar[float] = 0.5

    def reports(self, seconds: xs.Stream, name: str) -> xs.Stream:
        return seconds.iterate(vehicles_walmart, name=f"vehicles{name}")

    def marks(self, reports: xs.Stream, name: str) -> xs.Stream:
        return reports.iterate(accidents_walmart, name=f"accidents{name}")
