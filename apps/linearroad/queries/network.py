"""The query network: operators connected, for one shard of expressways and one rule set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import xstream as xs
from linearroad.queries.history import History
from linearroad.queries.operators.accidents import accidents
from linearroad.queries.operators.accounts import accounts
from linearroad.queries.operators.batches import PERIOD
from linearroad.queries.operators.brandeis import later_charges, visits
from linearroad.queries.operators.check import check
from linearroad.queries.operators.copies import shift
from linearroad.queries.operators.requests import expenditure, travel_time
from linearroad.queries.operators.statistics import statistics
from linearroad.queries.operators.tolls import tolls
from linearroad.queries.operators.vehicles import vehicles
from linearroad.queries.operators.walmart import accidents_walmart, vehicles_walmart

__all__ = [
    "RAW",
    "RULES",
    "Network",
    "Shard",
    "build",
    "build_shard",
    "copy_of",
    "decode",
    "look_up",
]

#: The raw rows: fifteen columns one after another (`INPUT_COLUMNS`), where each row comes from, and
#: whether the last second is whole.
RAW = xs.schema({"rows": xs.Segment(np.int32), "origin": xs.Segment(np.int64), "whole": bool})


@dataclass(frozen=True)
class Shard:
    """What is worked out for some expressways apart from all others: everything but accounts."""

    requests: xs.Stream
    notifications: xs.Stream
    charges: xs.Stream
    rejects: xs.Stream


@dataclass(frozen=True)
class Network:
    """The streams that a driver ends in sinks."""

    notifications: xs.Stream
    balances: xs.Stream
    expenditures: xs.Stream
    travel_times: xs.Stream
    rejects: tuple[xs.Stream, ...]


@dataclass(frozen=True)
class Rules:
    """What the rule sets differ in (docs/linear-road-rules.md, section 2.1)."""

    by_report: int
    lav_without_report: int
    lav_rounding: float


RULES = {
    "paper": Rules(by_report=0, lav_without_report=-1, lav_rounding=0.0),
    "brandeis": Rules(by_report=0, lav_without_report=-1, lav_rounding=0.0),
    "walmart": Rules(by_report=1, lav_without_report=0, lav_rounding=0.5),
}


def build(rows: xs.Stream, history: History, rules: str = "paper") -> Network:
    """The network behind a stream of raw rows (`RAW`), for one rule set."""
    seconds = decode(rows)
    shard = build_shard(seconds, rules)
    asked = shard.requests.select("time", "request", name="requests for accounts")
    charged = asked.zip(shard.charges, name="requests and charges")
    balances = charged.iterate(accounts, name="accounts")
    looked_up = look_up(shard.requests, history)
    rejects = (seconds.select("reject"), shard.rejects)
    return Network(shard.notifications, balances, *looked_up, rejects)


def decode(rows: xs.Stream, part: str = "") -> xs.Stream:
    """Whole seconds of checked rows. `part` ends the names, where a query has several parts."""
    return rows.iterate(check, name=f"check{part}")


def copy_of(
    seconds: xs.Stream, vid_by: int, xway_by: int, qid_by: int, part: str = ""
) -> xs.Stream:
    """The same seconds on expressways of their own; what is not shifted is shared."""
    changing = seconds.select("vid", "xway", "request", name=f"to be shifted{part}")
    shifted = changing.iterate(shift, vid_by, xway_by, qid_by, name=f"shifted{part}")
    both = shifted.zip(seconds, name=f"copy{part}")
    return both.select(*(field.name for field in seconds.schema), name=f"seconds{part}")


def build_shard(seconds: xs.Stream, rules: str, part: str = "") -> Shard:
    """Up to the tolls: what expressways can be worked on apart for."""
    reports, marks = _vehicles_and_accidents(seconds, rules, part)
    notified, charges = _tolls(reports, marks, rules, part)
    return Shard(
        seconds.select("time", "request", "last", name=f"requests{part}"),
        notified,
        charges,
        reports.select("reject", "implausible"),
    )


def look_up(requests: xs.Stream, history: History, part: str = "") -> tuple[xs.Stream, xs.Stream]:
    """Answers from history: daily expenditures and travel times."""
    asked = requests.select("time", "request", name=f"requests for history{part}")
    return (
        asked.iterate(expenditure, *history.expenditure_tables(), name=f"daily expenditure{part}"),
        asked.iterate(travel_time, *history.travel_tables(), name=f"travel time{part}"),
    )


def _vehicles_and_accidents(
    seconds: xs.Stream, rules: str, part: str
) -> tuple[xs.Stream, xs.Stream]:
    """What every report means, and the accident minutes that follow."""
    if rules == "walmart":
        reports = seconds.iterate(vehicles_walmart, name=f"vehicles{part}")
        return reports, reports.iterate(accidents_walmart, name=f"accidents{part}")
    standing = rules == "brandeis"
    # There a report still counts 30 s later, so the stop lasts one second more.
    reports = seconds.iterate(
        vehicles, int(standing), PERIOD + int(standing), name=f"vehicles{part}"
    )
    return reports, reports.iterate(accidents, int(not standing), name=f"accidents{part}")


def _tolls(
    reports: xs.Stream, marks: xs.Stream, rules: str, part: str
) -> tuple[xs.Stream, xs.Stream]:
    """Notifications and alerts, and the charges."""
    rule = RULES[rules]
    segments = reports.iterate(
        statistics, rule.by_report, rule.lav_without_report, rule.lav_rounding,
        name=f"segment statistics{part}",
    )  # fmt: skip
    flagged = reports
    if rules == "brandeis":
        visited = reports.zip(
            reports.iterate(visits, name=f"first visits{part}"), name=f"visited{part}"
        )
        order = ["value" if field.name == "flags" else field.name for field in reports.schema]
        flagged = visited.select(*order, name=f"triggers{part}")
    second = flagged.zip(segments, marks, name=f"second{part}")
    notified = second.iterate(tolls, rule.lav_without_report, name=f"tolls{part}")
    if rules == "brandeis":
        quotes = notified.select("time", "toll_vid", "toll", name=f"quotes{part}")
        return notified, quotes.iterate(later_charges, name=f"charges{part}")
    return notified, notified.select("charge_vid", "charge", name=f"charges{part}")
