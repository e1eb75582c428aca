"""Accounts: when each toll is charged, and the balance of an account at a second."""

from __future__ import annotations

from linearroad.validation.tables import Frame, Workshop

__all__ = ["balances", "charges"]

# The order of segments entered: by vehicle and expressway (`paper`), or by direction (`walmart`).
CHAIN = {"paper": "vid, xway", "walmart": "vid, xway, dir"}


def charges(shop: Workshop, notified: Frame, rules: str) -> Frame:
    """`vid, time, charge`, for charges above 0."""
    if rules == "brandeis":
        # At the vehicle's next notification, on any expressway, of a later second.
        charged = shop.table(
            """
            SELECT vid, min(time) OVER (PARTITION BY vid ORDER BY time
                        RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS time, toll AS charge
            FROM {notified} WHERE lane <> 4
            """,
            notified=notified,
        )
    else:
        # At the report that shows another segment, for the one that is left behind.
        charged = shop.table(
            f"""
            SELECT vid, IF(first, NULL, time) AS time,
                   lag(toll) OVER (PARTITION BY {CHAIN[rules]} ORDER BY time) AS charge
            FROM {{notified}}
            """,
            notified=notified,
        )
    return charged.where("time IS NOT NULL AND charge > 0")


def balances(shop: Workshop, asked: Frame, charged: Frame) -> Frame:
    """`vid, time, balance` for every requested (vid, time), each once."""
    return shop.table(
        """
        SELECT a.vid, a.time, coalesce(sum(c.charge), 0L) AS balance
        FROM (SELECT DISTINCT vid, time FROM {asked}) AS a
        LEFT JOIN {charged} AS c ON a.vid = c.vid AND c.time <= a.time
        GROUP BY a.vid, a.time
        """,
        asked=asked,
        charged=charged,
    )
