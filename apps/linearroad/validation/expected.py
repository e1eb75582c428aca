"""The expected answers of a run, in the five columns that are compared.

| type | key | value | amount |
|---|---|---|---|
| 0 toll notification | VID | Lav | Toll |
| 1 accident alert | VID | Seg | 0 |
| 2 account balance | QID | ResultTime | Bal |
| 3 daily expenditure | QID | 0 | Bal |
| 4 travel time | QID | TravelTime | Toll |
"""

from __future__ import annotations

from dataclasses import dataclass

from linearroad.validation.accidents import accident_minutes
from linearroad.validation.accounts import balances, charges
from linearroad.validation.history import History, expenditures, travel_times
from linearroad.validation.progress import Say, quiet
from linearroad.validation.quotes import notify, quote
from linearroad.validation.rows import Input
from linearroad.validation.tables import Frame, Workshop
from linearroad.validation.vehicles import follow

__all__ = ["Expected", "expect"]


@dataclass(frozen=True)
class Expected:
    """The answers, and the tables that explain them."""

    answers: Frame  # type, time, key, value, amount
    notified: Frame  # vid, xway, dir, seg, time, lane, lav, toll, accident_seg
    charged: Frame  # vid, time, charge
    travelled: Frame  # time, qid, traveltime, toll
    requests: Frame


def expect(shop: Workshop, rows: Input, history: History, rules: str, say: Say = quiet) -> Expected:
    """The answers that docs/linear-road-rules.md, sections 2 to 5 ask for."""
    followed = follow(shop, rows, rules)
    say("quoting tolls and finding accidents")
    accidents = accident_minutes(shop, followed.standing, rules, rows.last_second // 60 + 1)
    quotes = shop.keep(quote(shop, followed.counted, accidents, rules))
    notified = notify(shop, followed.entered, quotes, shop.rows_kept)
    charged = shop.keep(charges(shop, notified, rules))
    say("answering requests")
    travelled = shop.keep(travel_times(shop, rows.requests, history.segments))
    asked = rows.requests.where("type = 2")
    answers = shop.table(
        """
        SELECT inline(IF(accident_seg IS NULL,
            array(struct(0Y AS type, time, vid AS key, lav AS value, toll AS amount)),
            array(struct(0Y AS type, time, vid AS key, lav AS value, toll AS amount),
                  struct(1Y AS type, time, vid AS key, accident_seg AS value, 0L AS amount))))
        FROM {notified} WHERE lane <> 4
        UNION ALL
        SELECT 2Y, time, qid, time, balance
        FROM {asked} JOIN {balances} USING (vid, time)
        UNION ALL
        SELECT 3Y, time, qid, 0, balance FROM {spent}
        UNION ALL
        SELECT 4Y, time, qid, traveltime, toll FROM {travelled}
        """,
        notified=notified,
        asked=asked,
        balances=balances(shop, asked, charged),
        spent=expenditures(shop, rows.requests, history.tolls),
        travelled=travelled,
    )
    return Expected(answers, notified, charged, travelled, rows.requests)
