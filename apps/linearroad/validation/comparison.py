"""Compares expected answers with those of a run: missing, superfluous, different or late."""

from __future__ import annotations

from dataclasses import dataclass

from linearroad.validation.accounts import balances
from linearroad.validation.answers import LIMITS_S
from linearroad.validation.expected import Expected
from linearroad.validation.flat import FILE_BITS
from linearroad.validation.tables import Frame, Workshop

__all__ = ["OLDEST_BALANCE_S", "TRAVEL_MARGIN", "Comparison", "compare"]

OLDEST_BALANCE_S = 60
TRAVEL_MARGIN = 0.05
LIMIT_MS = "CASE type " + " ".join(
    f"WHEN {kind} THEN {1000 * limit}" for kind, limit in enumerate(LIMITS_S)
) + " END"  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Counts by type and minute, and every difference."""

    minutes: Frame  # type, minute, expected, answered, right
    differences: Frame  # kind, type, time, key, expected_*, answered_*


def compare(
    shop: Workshop, expected: Expected, answers: Frame, timed: bool, ordered: bool
) -> Comparison:
    """Compare as multisets: an answer is right as often as it is expected.

    `timed`: Emit counts. `ordered`: so does the order of the answers' seconds.
    """
    whole = answers.where("malformed IS NULL")
    accepted = _accepted(shop, expected, whole)
    each = shop.table(
        """
        SELECT type, time, key, value, amount, sum(e) AS e, sum(a) AS a
        FROM (SELECT type, time, key, value, amount, 1 AS e, 0 AS a FROM {expected}
              UNION ALL
              SELECT type, time, key, value, amount, 0 AS e, 1 AS a FROM {accepted})
        GROUP BY type, time, key, value, amount
        """,
        expected=expected.answers,
        accepted=accepted,
    )
    # One pass for both: totals by minute, and the rows that do not agree one by one.
    totals = shop.keep(
        shop.table(
            """
            SELECT type, CAST(time DIV 60 AS int) + 1 AS minute,
                   IF(e = a, NULL, struct(time, key, value, amount, e, a)) AS odd,
                   sum(e) AS expected, sum(a) AS answered, sum(least(e, a)) AS right
            FROM {each} GROUP BY 1, 2, 3
            """,
            each=each,
        )
    )
    minutes = shop.table(
        """
        SELECT type, minute, sum(expected) AS expected, sum(answered) AS answered,
               sum(right) AS right
        FROM {totals} GROUP BY type, minute
        """,
        totals=totals,
    )
    odd = totals.where("odd IS NOT NULL").select("type", "odd.*")
    differences = _paired(shop, odd).unionByName(_unlike(shop, answers, timed))
    if ordered:
        differences = differences.unionByName(_disordered(shop, whole))
    return Comparison(minutes, shop.keep(differences))


def _accepted(shop: Workshop, expected: Expected, answers: Frame) -> Frame:
    """The answers, in which accepted deviations are replaced by the expected answers.

    A balance may be that of any second of the last 60; a travel time may be off by 5 %.
    """
    older = shop.table(
        f"""
        SELECT a.time, a.key, a.value, a.amount, r.vid
        FROM {{answers}} AS a JOIN {{requests}} AS r ON a.key = r.qid AND a.time = r.time
        WHERE a.type = 2 AND r.type = 2 AND a.value < a.time
              AND a.value >= a.time - {OLDEST_BALANCE_S}
        """,
        answers=answers,
        requests=expected.requests,
    )
    points = older.selectExpr("vid", "value AS time").unionAll(older.select("vid", "time"))
    held = balances(shop, points, expected.charged)
    older_right = shop.table(
        """
        SELECT o.time, o.key, o.value, o.amount, min(now.balance) AS balance
        FROM {older} AS o
        JOIN {held} AS was ON o.vid = was.vid AND o.value = was.time AND o.amount = was.balance
        JOIN {held} AS now ON o.vid = now.vid AND o.time = now.time
        GROUP BY o.time, o.key, o.value, o.amount
        """,
        older=older,
        held=held,
    )
    near = shop.table(
        """
        SELECT time, qid AS key, toll AS amount, collect_set(traveltime) AS times
        FROM {travelled} GROUP BY time, qid, toll
        """,
        travelled=expected.travelled,
    )
    return shop.table(
        f"""
        SELECT type, time, key, value, amount FROM {{answers}} WHERE type IN (0, 1, 3)
        UNION ALL
        SELECT a.type, a.time, a.key, IF(o.balance IS NULL, a.value, a.time),
               coalesce(o.balance, a.amount)
        FROM (SELECT * FROM {{answers}} WHERE type = 2) AS a LEFT JOIN {{older_right}} AS o
        ON a.time = o.time AND a.key = o.key AND a.value = o.value AND a.amount = o.amount
        UNION ALL
        SELECT a.type, a.time, a.key,
               coalesce(IF(array_contains(n.times, a.value), a.value, NULL),
                        get(filter(n.times, t -> abs(a.value - t) <= {TRAVEL_MARGIN} * abs(t)), 0),
                        a.value),
               a.amount
        FROM (SELECT * FROM {{answers}} WHERE type = 4) AS a LEFT JOIN {{near}} AS n
        ON a.time = n.time AND a.key = n.key AND a.amount = n.amount
        """,
        answers=answers,
        older_right=older_right,
        near=near,
    )


def _paired(shop: Workshop, odd: Frame) -> Frame:
    """Missing and superfluous answers, in pairs where they have the same key."""
    both = shop.keep(
        shop.table(
            """
            SELECT type, time, key, value, amount, side, twice,
                   row_number() OVER (PARTITION BY type, time, key, side, twice
                                      ORDER BY value, amount) AS rank
            FROM (SELECT type, time, key, value, amount, e > a AS side, e > 0 AND a > e AS twice,
                         explode(sequence(1L, abs(e - a))) AS copy
                  FROM {odd})
            """,
            odd=odd,
        )
    )
    return shop.table(
        """
        SELECT 'duplicate' AS kind, type, time, key, value AS expected_value,
               amount AS expected_amount, value AS answered_value, amount AS answered_amount,
               CAST(NULL AS bigint) AS emit_ms, CAST(NULL AS string) AS text
        FROM {both} WHERE twice
        UNION ALL
        SELECT CASE WHEN a.key IS NULL THEN 'missing' WHEN e.key IS NULL THEN 'unexpected'
                    ELSE 'different' END,
               type, time, key, e.value, e.amount, a.value, a.amount, NULL, NULL
        FROM (SELECT * FROM {both} WHERE side) AS e
        FULL OUTER JOIN (SELECT * FROM {both} WHERE NOT side AND NOT twice) AS a
        USING (type, time, key, rank)
        """,
        both=both,
    )


def _unlike(shop: Workshop, answers: Frame, timed: bool) -> Frame:
    """Malformed rows, and answers before their time or after their limit."""
    timing = f"""WHEN emit_ms < 1000L * time THEN 'early'
                 WHEN emit_ms - 1000L * time > {LIMIT_MS} THEN 'late'"""
    return shop.table(
        f"""
        SELECT * FROM (
            SELECT CASE WHEN malformed IS NOT NULL THEN 'malformed'
                        {timing if timed else ""} END AS kind,
                   type, time, key, CAST(NULL AS int) AS expected_value,
                   CAST(NULL AS bigint) AS expected_amount, value AS answered_value,
                   amount AS answered_amount, emit_ms, malformed AS text
            FROM {{answers}})
        WHERE kind IS NOT NULL
        """,
        answers=answers,
    )


def _disordered(shop: Workshop, answers: Frame) -> Frame:
    """Seconds with an answer that follows an answer of a later second in the file."""
    return shop.table(
        f"""
        SELECT 'disorder' AS kind, type, time, CAST(NULL AS int) AS key,
               CAST(NULL AS int) AS expected_value, CAST(NULL AS bigint) AS expected_amount,
               CAST(NULL AS int) AS answered_value, CAST(NULL AS bigint) AS answered_amount,
               CAST(NULL AS bigint) AS emit_ms, CAST(NULL AS string) AS text
        FROM (SELECT *, min(first) OVER (PARTITION BY file ORDER BY time DESC
                            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS overtaken
              FROM (SELECT shiftright(place, {FILE_BITS}) AS file, time, min(place) AS first,
                           max(place) AS last, max_by(type, place) AS type
                    FROM {{answers}} GROUP BY 1, 2))
        WHERE last > overtaken
        """,
        answers=answers,
    )
