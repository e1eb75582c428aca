"""Tolls, credits and balances by the rules of the thesis, as expected answers."""

from __future__ import annotations

from dataclasses import dataclass

from linearroad.validation.tables import Frame, Workshop
from linearroad.validation.thesis_accounts import INPUT, OUTPUT, accounts_of
from linearroad.validation.thesis_balances import ROWS, balances_of
from linearroad.validation.thesis_choices import with_accepted, with_choices
from linearroad.validation.thesis_expected import Known
from xstream.errors import InputError

__all__ = ["Tariff", "money_of"]

_PAIRS = "array<struct<speed bigint, base bigint>>"


@dataclass(frozen=True)
class Tariff:
    """The constants of the run."""

    basetoll: int = 2
    basecredit: int = 50
    ftmin: int = 500

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < 2**31:
                raise InputError(f"--{name} must be from 0 to {2**31 - 1}, not {value}")


def money_of(
    shop: Workshop, known: Known, requests: Frame, sent: Frame, tariff: Tariff, strict: bool
) -> Frame:
    """`type, time, key, f2, f3, f4, rank` of notifications, balances and expenditures.

    `sent` are the notifications of the answers (vid, sent_speed, sent_toll, rank). Not `strict`:
    tolls of any second of the last 60 are accepted, and then charged.
    """
    asked = requests.where("type IN (2, 3)")
    several = shop.keep(
        shop.table(
            """
            SELECT DISTINCT vid FROM {events} WHERE entered
            GROUP BY vid, time HAVING count(*) > 1
            """,
            events=known.events,
        )
    )
    if several.isEmpty():
        return shop.keep(_at_once(shop, known, asked, sent, tariff, strict))
    parts = []
    for join in ("anti", "semi"):
        events, wanted, told = (
            frame.join(several.hint("broadcast"), "vid", join)
            for frame in (known.events, asked, sent)
        )
        few = Known(known.reports, events, known.alerts)
        made = _at_once if join == "anti" else _one_by_one
        parts.append(made(shop, few, wanted, told, tariff, strict))
    return shop.keep(parts[0].unionByName(parts[1]))


def _at_once(
    shop: Workshop, known: Known, asked: Frame, sent: Frame, tariff: Tariff, strict: bool
) -> Frame:
    """For vehicles that enter at most one segment in a second."""
    entered = known.events.where("entered")
    event = ("0 AS what", "vid", "time", "xway")
    marks = ("first", "credited", "speed", "base")
    unsent = ("0 AS sent_speed", "0 AS sent_toll", "false AS full", "false AS half")
    none = ("0 AS kind", "0 AS qid")
    told = unsent
    if not strict:
        matched = _with_sent(shop, entered, sent)
        entered = with_accepted(shop, matched, known.reports, tariff.basetoll)
        told = ("sent_speed", "sent_toll", "full", "half")
    parts = [
        entered.selectExpr(*event, "true AS entered", *marks, *told, *none),
        known.events.where("NOT entered").selectExpr(
            *event, "false AS entered", *marks, *unsent, *none),
        asked.selectExpr(
            "1 AS what", "vid", "time", "xway", "false AS entered", "false AS first",
            "false AS credited", "0 AS speed", "0 AS base", *unsent, "type AS kind", "qid"),
    ]  # fmt: skip
    schema = shop.spark.createDataFrame([], ROWS).schema
    together = parts[0].unionByName(parts[1]).unionByName(parts[2]).to(schema)
    settled = balances_of(tariff.basecredit, tariff.ftmin)
    return together.repartition("vid").mapInArrow(settled, OUTPUT)


def _with_sent(shop: Workshop, entered: Frame, sent: Frame) -> Frame:
    """The entries, each with the notification that was sent for it: by VID and order."""
    return shop.table(
        """
        SELECT e.*, s.sent_speed, s.sent_toll
        FROM (SELECT *, row_number() OVER (PARTITION BY vid ORDER BY time) - 1 AS rank
              FROM {entered}) AS e
        LEFT JOIN {sent} AS s ON e.vid = s.vid AND e.rank = s.rank
        """,
        entered=entered,
        sent=sent,
    )


def _one_by_one(
    shop: Workshop, known: Known, asked: Frame, sent: Frame, tariff: Tariff, strict: bool
) -> Frame:
    """For vehicles that enter segments of several expressways in one second."""
    events = known.events.selectExpr("*", f"CAST(NULL AS {_PAIRS}) AS choices")
    if not strict:
        events = with_choices(shop, known.events, known.reports, tariff.basetoll)
    nothing = f"CAST(NULL AS {_PAIRS}) AS choices"
    no_event = ("false AS entered", "false AS first", "false AS credited")
    parts = [
        events.selectExpr("0 AS what", "vid", "time", "xway", "entered", "first", "credited",
                          "speed", "base", "choices", "0 AS kind", "0 AS qid", "0L AS place"),
        asked.selectExpr(
            "1 AS what", "vid", "time", "xway", *no_event, "0L AS speed", "0L AS base", nothing,
            "type AS kind", "qid", "0L AS place"),
        sent.selectExpr(
            "2 AS what", "vid", "0 AS time", "0 AS xway", *no_event, "sent_speed AS speed",
            "sent_toll AS base", nothing, "0 AS kind", "0 AS qid", "rank AS place"),
    ]  # fmt: skip
    together = parts[0].unionByName(parts[1]).unionByName(parts[2])
    together = together.to(shop.spark.createDataFrame([], INPUT).schema)
    followed = accounts_of(tariff.basecredit, tariff.ftmin)
    return together.repartition("vid").mapInArrow(followed, OUTPUT)
