"""Describes differences in sentences, with details of the vehicle or the request."""

from __future__ import annotations

from linearroad.validation.answers import LIMITS_S
from linearroad.validation.comparison import OLDEST_BALANCE_S, TRAVEL_MARGIN
from linearroad.validation.expected import Expected
from linearroad.validation.tables import Frame, Workshop

__all__ = ["in_words"]

_REQUEST = "CASE type WHEN 2 THEN 'balance' WHEN 3 THEN 'expenditure' ELSE 'travel-time' END"
_LIMIT = "CASE type " + " ".join(f"WHEN {k} THEN {s}" for k, s in enumerate(LIMITS_S)) + " END"
_ABOUT = f"""CASE
    WHEN type IN (0, 1) AND seg IS NOT NULL
        THEN concat('vehicle ', key, ' crossed into segment ', seg, ' at ', time, ' s')
    WHEN type IN (0, 1) AND NOT known
        THEN concat('vehicle ', key, ' at ', time, ' s is not in the input')
    WHEN type IN (0, 1)
        THEN concat('vehicle ', key, ' at ', time, ' s crossed into no segment')
    WHEN vid IS NOT NULL
        THEN concat({_REQUEST}, ' request ', key, ' of vehicle ', vid, ' at ', time, ' s')
    ELSE concat({_REQUEST}, ' request ', key, ' at ', time, ' s is not in the input') END"""


def _answer(side: str) -> str:
    value, amount = f"{side}_value", f"{side}_amount"
    return f"""CASE type
        WHEN 0 THEN concat('a toll notification (LAV ', {value}, ', toll ', {amount}, ')')
        WHEN 1 THEN concat('an alert for the accident in ', {value})
        WHEN 2 THEN concat('a balance of ', {amount}, ' as of ', {value}, ' s')
        WHEN 3 THEN concat('an expenditure of ', {amount})
        ELSE concat('a travel time of ', {value}, ' s and a toll of ', {amount}) END"""


# Why an answer that differs is not accepted by the rules.
_REMARK = f"""CASE
    WHEN type = 2 AND answered_value < time - {OLDEST_BALANCE_S}
        THEN concat(' (', time - answered_value, ' s old, at most {OLDEST_BALANCE_S} are allowed)')
    WHEN type = 2 AND answered_value > time THEN ' (of a second after the request)'
    WHEN type = 4 AND expected_amount = answered_amount
        THEN ' (more than {TRAVEL_MARGIN:.0%} off)'
    ELSE '' END"""
_DELAY = "format_string('%.3f', abs(emit_ms - 1000L * time) / 1000.0D)"
_SENTENCE = f"""CASE kind
    WHEN 'missing' THEN concat({_ABOUT}, ': expected ', {_answer("expected")}, ', none was sent')
    WHEN 'unexpected' THEN concat({_ABOUT}, ': expected nothing, ', {_answer("answered")},
                                  ' was sent')
    WHEN 'different' THEN concat({_ABOUT}, ': expected ', {_answer("expected")}, ', ',
                                 {_answer("answered")}, ' was sent', {_REMARK})
    WHEN 'duplicate' THEN concat({_ABOUT}, ': ', {_answer("answered")},
                                 ' was sent more than once')
    WHEN 'late' THEN concat({_ABOUT}, ': ', {_answer("answered")}, ' was sent ', {_DELAY},
                            ' s after, the limit is ', {_LIMIT}, ' s')
    WHEN 'early' THEN concat({_ABOUT}, ': ', {_answer("answered")}, ' was sent ', {_DELAY},
                             ' s before')
    WHEN 'disorder' THEN concat('an answer of ', time, ' s comes after one of a later second')
    ELSE concat('a row is no answer: ', text) END"""


def in_words(shop: Workshop, differences: Frame, expected: Expected, vids: Frame) -> Frame:
    """Every difference with its circumstances and a sentence, earliest first."""
    crossed = shop.table(
        """
        SELECT n.vid AS key, n.time, min(xway) AS xway, min(dir) AS dir, min(seg) AS seg
        FROM {notified} AS n LEFT SEMI JOIN (SELECT * FROM {differences} WHERE type IN (0, 1)) AS d
        ON n.vid = d.key AND n.time = d.time GROUP BY n.vid, n.time
        """,
        notified=expected.notified,
        differences=differences,
    )
    asked = shop.table(
        "SELECT type, qid AS key, time, min(vid) AS vid FROM {requests} GROUP BY type, qid, time",
        requests=expected.requests,
    )
    seen = shop.table(
        """
        SELECT DISTINCT vid AS key, true AS known FROM {vids}
        WHERE vid IN (SELECT key FROM {differences} WHERE kind = 'unexpected' AND type IN (0, 1))
        """,
        vids=vids,
        differences=differences,
    )
    known = shop.table(
        """
        SELECT d.kind, d.type, d.time, CAST(d.time DIV 60 AS int) + 1 AS minute, d.key,
               d.expected_value, d.expected_amount, d.answered_value, d.answered_amount,
               d.emit_ms, d.text, c.xway, c.dir, c.seg,
               IF(d.type IN (0, 1), d.key, a.vid) AS vid, coalesce(s.known, false) AS known
        FROM {differences} AS d
        LEFT JOIN {crossed} AS c ON d.type IN (0, 1) AND d.key = c.key AND d.time = c.time
        LEFT JOIN {asked} AS a ON d.type = a.type AND d.key = a.key AND d.time = a.time
        LEFT JOIN {seen} AS s ON d.type IN (0, 1) AND d.key = s.key
        """,
        differences=differences,
        crossed=crossed,
        asked=asked,
        seen=seen,
    )
    return known.selectExpr("*", f"{_SENTENCE} AS sentence").drop("known")
